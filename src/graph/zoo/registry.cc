// The list of models, parsing of their parameters, and the zoo's public functions.
#include <algorithm>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/zoo.h"
#include "models.h"
#include "net.h"

namespace heddle {
namespace {

using zoo::Model;
using zoo::Net;
using zoo::Values;

const std::vector<Model>& models() {
  static const std::vector<Model> all = [] {
    std::vector<Model> list;
    for (auto family :
         {zoo::resnet_models, zoo::inception_models, zoo::nasnet_models, zoo::gpt_models, zoo::llama_models,
          zoo::bert_models, zoo::swin_models, zoo::evoformer_models, zoo::gnmt_models}) {
      for (Model& model : family()) list.push_back(std::move(model));
    }
    return list;
  }();
  return all;
}

Result<const Model*> find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const Model& model : models()) {
    if (model.entry.name == name) return &model;
    names.push_back(model.entry.name);
  }
  return not_found("the zoo has no model " + quote_text(name) + did_you_mean(name, names) + "; it has " +
                   join_names(names, 100));
}

Result<int64_t> read_number(const ZooParam& param, const std::string& text) {
  const auto number = parse_number<int64_t>(text);
  if (!number || *number < param.min || *number > param.max) {
    return invalid_input(param.name + " is " + quote_text(text) + ", expected a whole number from " +
                         std::to_string(param.min) + " to " + std::to_string(param.max) + " (" +
                         param.description + ")");
  }
  return *number;
}

Result<DType> read_dtype(const std::string& text) {
  if (text == "f32") return DType::kF32;
  if (text == "f16") return DType::kF16;
  return invalid_input("dtype is " + quote_text(text) + ", expected f32 or f16");
}

Result<Net> describe_model(const Model& model, const ZooParams& params) {
  const ZooEntry& entry = model.entry;
  std::vector<std::string> names = {"dtype"};
  Values numbers;
  for (const ZooParam& param : entry.params) {
    names.push_back(param.name);
    numbers[param.name] = param.default_value;
    if (const auto given = params.find(param.name); given != params.end()) {
      HEDDLE_ASSIGN_OR_RETURN(numbers[param.name], read_number(param, given->second));
    }
  }
  for (const auto& [key, text] : params) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      return invalid_input("there is no parameter " + quote_text(key) + did_you_mean(key, names) +
                           "; it has " + join_names(names));
    }
  }
  DType dtype = DType::kF32;
  if (const auto given = params.find("dtype"); given != params.end()) {
    HEDDLE_ASSIGN_OR_RETURN(dtype, read_dtype(given->second));
  }
  Net net(entry.name, dtype);
  model.describe(net, numbers);
  HEDDLE_RETURN_IF_ERROR(net.status());
  return net;
}

Result<Net> describe(const std::string& name, const ZooParams& params) {
  HEDDLE_ASSIGN_OR_RETURN(const Model* model, find_model(name));
  return with_context(describe_model(*model, params), "zoo model '" + name + "'");
}

}  // namespace

std::span<const ZooEntry> zoo_models() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> list;
    for (const Model& model : models()) list.push_back(model.entry);
    return list;
  }();
  return entries;
}

Result<ZooParams> parse_zoo_params(const std::vector<std::string>& texts) {
  ZooParams params;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return invalid_input("the parameter " + quote_text(text) + " is not of the form key=value");
    if (!params.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return invalid_input("the parameter " + quote_text(text.substr(0, equals)) + " is given twice");
    }
  }
  return params;
}

Result<std::shared_ptr<const Graph>> build_zoo_graph(const std::string& name, const ZooParams& params) {
  HEDDLE_ASSIGN_OR_RETURN(const Net net, describe(name, params));
  return zoo::to_graph(net);
}

Result<ZooSize> zoo_size(const std::string& name, const ZooParams& params) {
  HEDDLE_ASSIGN_OR_RETURN(const Net net, describe(name, params));
  ZooSize size;
  size.ops = static_cast<int64_t>(net.nodes().size());
  for (const auto& value : net.values())
    if (value.kind == zoo::ValueKind::kWeight) size.parameters += value.weight.trained;
  for (const auto& node : net.nodes())
    if (node.is_product()) size.macs += node.flops / 2;
  return size;
}

Result<std::string> write_zoo_onnx(const std::string& name, const ZooParams& params, const std::string& path,
                                   const ZooOnnxOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Net net, describe(name, params));
  return zoo::write_onnx(net, options, path);
}

}  // namespace heddle
