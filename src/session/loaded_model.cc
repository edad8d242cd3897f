#include "heddle/session/loaded_model.h"

#include <filesystem>
#include <utility>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/graph_json.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/hios_workload.h"

namespace heddle {
namespace {

Result<LoadedModel> load_zoo(const std::string& text) {
  const auto parts = split_list(text);
  if (parts.empty()) return invalid_input("zoo: needs a name: zoo:NAME; `heddle generate --list` names them");
  HEDDLE_ASSIGN_OR_RETURN(auto params, parse_zoo_params({parts.begin() + 1, parts.end()}));
  LoadedModel loaded;
  loaded.name = parts[0];
  HEDDLE_ASSIGN_OR_RETURN(loaded.graph, build_zoo_graph(parts[0], params));
  return loaded;
}

Result<LoadedModel> load_graph_file(const std::string& path) {
  LoadedModel loaded;
  const auto json = read_json_file(path);
  if (json.ok() && is_ios_graph(*json)) {
    HEDDLE_ASSIGN_OR_RETURN(auto file, read_ios_graph(path));
    loaded.graph = file.graph;
    loaded.stages = std::move(file.stages);
    loaded.ios = true;
  } else if (json.ok() && is_hios_workload(*json)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto problem, read_hios_workload(path, {}));
    loaded.graph = problem.graph;
    loaded.simulation = true;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(loaded.graph, read_graph_file(path));
  }
  loaded.name = loaded.graph->name();
  return loaded;
}

// Graphs have their shapes.
Status check_is_model(const ModelSpec& source) {
  const char* what = first_given({{"a shape", !source.import.shapes.empty()},
                                  {"a value of an input", !source.import.values.empty()},
                                  {"a batch size", source.import.batch.has_value()},
                                  {"a size to split weights at", source.import.split_bytes > 0}});
  if (what != nullptr)
    return invalid_input(std::string(what) + " is about importing a model; " + source.path + " is a graph");
  return {};
}

}  // namespace

SignatureFn signature_of(const LoadedModel& loaded) {
  auto model = loaded.base ? loaded.base : loaded.model;
  return [model](std::span<const OpId> ops) { return model->signature(ops); };
}

Result<LoadedModel> load_model(const ModelSpec& source) {
  const std::string& path = source.path;
  if (path.starts_with("zoo:")) {
    HEDDLE_RETURN_IF_ERROR(check_is_model(source));
    return load_zoo(path.substr(4));
  }
  if (!file_exists(path)) {
    return not_found(path + ": no such file; expected a model (.onnx), a Heddle graph (.json) or zoo:NAME");
  }
  if (path.ends_with(".json")) {
    HEDDLE_RETURN_IF_ERROR(check_is_model(source));
    return load_graph_file(path);
  }
  HEDDLE_ASSIGN_OR_RETURN(auto model, Model::load(path, source.import));
  LoadedModel loaded;
  loaded.name = std::filesystem::path(path).stem().string();
  loaded.model = model;
  loaded.graph = model->graph();
  return loaded;
}

Result<std::shared_ptr<const Model>> load_model_of(const Problem& problem, const std::string& plan) {
  const auto& reference = problem.model;
  if (!reference) return std::shared_ptr<const Model>();
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model,
                          Model::load(reference->path, import_options(*reference)));
  if (model->file_hash() != reference->file_hash) {
    return invalid_input(plan + ": was made for " + reference->path + " with content " +
                         hex64(reference->file_hash) + ", but that file now has " +
                         hex64(model->file_hash()) + "; plan it again");
  }
  return model;
}

}  // namespace heddle
