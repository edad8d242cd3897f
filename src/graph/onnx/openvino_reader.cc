#include "openvino_reader.h"

#include <functional>
#include <map>
#include <mutex>
#include <openvino/core/model.hpp>
#include <openvino/frontend/extension/conversion.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/runtime/core.hpp>
#include <sstream>
#include <unordered_set>

#include "heddle/base/spelling.h"

namespace heddle::internal {
namespace {

// Never destroyed: plugins that unload at exit race with other static destructors.
ov::Core& core() {
  static auto* instance = new ov::Core();
  return *instance;
}

// A frontend of the caller's own; its library is loaded once and stays loaded. Loading by name avoids loading
// every frontend to ask whether it knows the model.
ov::frontend::FrontEnd::Ptr onnx_frontend() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static auto* const manager = new ov::frontend::FrontEndManager();
  static auto* const kept = new ov::frontend::FrontEnd::Ptr();
  auto frontend = manager->load_by_framework("onnx");
  if (!*kept) *kept = frontend;
  return frontend;
}

void know_regions(ov::frontend::FrontEnd& frontend, const ReadSource& source) {
  for (size_t i = 0; i < source.regions.size(); ++i) {
    const auto convert = [program = source.regions[i]](const ov::frontend::NodeContext& node) {
      ov::OutputVector inputs;
      for (int at = 0; at < static_cast<int>(node.get_input_size()); ++at)
        inputs.push_back(node.get_input(at));
      return region_outputs(inputs, program);
    };
    frontend.add_extension(std::make_shared<ov::frontend::ConversionExtension>(
        kRegionOperator + std::to_string(i), ov::frontend::CreatorFunction(convert)));
  }
}

// `skeleton`: null, or that of the file, whose weights are mapped.
ov::frontend::InputModel::Ptr load(ov::frontend::FrontEnd& frontend, const std::string& path,
                                   const std::string* skeleton) {
  if (skeleton == nullptr) return frontend.load(path);
  std::istringstream stream(*skeleton);
  return frontend.load(static_cast<std::istream*>(&stream), path, true);
}

std::shared_ptr<ov::Model> read_model(const ReadSource& source) {
  if (source.skeleton == nullptr) return core().read_model(source.path);
  const auto frontend = onnx_frontend();
  know_regions(*frontend, source);
  return frontend->convert(load(*frontend, source.path, source.skeleton));
}

// OpenVINO renames inputs and outputs around identity-like nodes; restore the file's names, which users know.
void name_ends(ov::Model& model, const OnnxModel& onnx) {
  std::unordered_set<std::string_view> weights;
  for (const auto& t : onnx.graph.initializers) weights.insert(t.name);
  std::vector<std::string> inputs;
  for (const auto& v : onnx.graph.inputs)
    if (!weights.contains(v.name)) inputs.emplace_back(v.name);
  const auto& parameters = model.get_parameters();
  if (parameters.size() != inputs.size()) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    parameters[i]->set_friendly_name(inputs[i]);
    parameters[i]->output(0).get_tensor().add_names({inputs[i]});
  }
}

// Describes a node in the file's terms: the ONNX node found by its own tensor names or the nearest reader's.
std::string place_of(const ov::Node& node, const OnnxModel* onnx) {
  const std::string type = std::string(" (") + node.get_type_name() + ")";
  const auto* at = &node;
  for (int step = 0; step < 32; ++step) {
    for (const auto& output : at->outputs()) {
      const auto& names = output.get_names();
      if (names.empty()) continue;
      const std::string name = *std::min_element(names.begin(), names.end());
      const auto* found = find_onnx_node(onnx, name);
      return found != nullptr ? node_text(*found) : "op " + quote_text(name) + type;
    }
    if (at->get_output_size() == 0 || at->output(0).get_target_inputs().empty()) break;
    at = at->output(0).get_target_inputs().begin()->get_node();
  }
  return "op " + quote_text(onnx == nullptr ? node.get_friendly_name() : node.get_type_name()) + type;
}

// Outputs without readers may stay dynamic, for example the indices of a pooling.
bool is_static(const ov::Model& model) {
  for (const auto& node : model.get_ordered_ops()) {
    if (ov::is_type<ov::op::v0::Result>(node)) continue;
    for (const auto& output : node->outputs()) {
      if (output.get_target_inputs().empty()) continue;
      if (output.get_partial_shape().is_dynamic() || output.get_element_type().is_dynamic()) return false;
    }
  }
  return true;
}

Status check_types(const ov::Model& model, const OnnxModel* onnx) {
  for (const auto& node : model.get_ordered_ops()) {
    if (ov::is_type<ov::op::v0::Result>(node)) continue;
    for (const auto& output : node->outputs()) {
      if (!output.get_target_inputs().empty() && output.get_element_type().is_dynamic())
        return unsupported(place_of(*node, onnx) + ": the type of its output is unknown");
    }
  }
  return {};
}

using Read = std::function<std::shared_ptr<ov::Model>()>;

Result<ReadModel> convert(const OnnxModel* onnx, Unconverted& unconverted, const Read& read) {
  ReadModel out;
  try {
    out.model = read();
    if (onnx != nullptr) name_ends(*out.model, *onnx);
    HEDDLE_ASSIGN_OR_RETURN(out.states, states_as_inputs(*out.model));
  } catch (const std::exception& e) {
    unconverted = unconverted_in(e.what());
    return conversion_error(e.what(), onnx);
  } catch (...) {
    return invalid_input("OpenVINO's importer failed without a reason");
  }
  return out;
}

// A model of the inputs alone.
std::shared_ptr<ov::Model> inputs_of(const ov::frontend::InputModel& model) {
  ov::ParameterVector parameters;
  for (const auto& input : model.get_inputs()) {
    const std::string name = input->get_names().at(0);
    parameters.push_back(std::make_shared<ov::op::v0::Parameter>(model.get_element_type(input),
                                                                 model.get_partial_shape(input)));
    parameters.back()->set_friendly_name(name);
    parameters.back()->output(0).get_tensor().add_names({name});
  }
  return std::make_shared<ov::Model>(ov::ResultVector(), parameters, "inputs");
}

// Sets the inputs' shapes before the conversion, for operators whose conversion needs the rank of what they
// read. `failed`: the error of a conversion without shapes.
Result<ReadModel> read_with_shapes(const ReadSource& source, const ImportOptions& options,
                                   Unconverted& unconverted, const Error& failed) {
  std::shared_ptr<ov::Model> inputs;
  const auto frontend = onnx_frontend();
  ov::frontend::InputModel::Ptr input_model;
  try {
    know_regions(*frontend, source);
    input_model = load(*frontend, source.path, source.skeleton);
    inputs = inputs_of(*input_model);
  } catch (const std::exception&) {
    return failed;
  }
  auto shapes = wanted_shapes(*inputs, options, source.onnx);
  if (!shapes) unconverted = {};
  if (!shapes)
    return Error(failed.code(),
                 failed.message() + "; it may need the inputs' shapes: " + shapes.error().message());
  if (shapes->changes.empty()) return failed;
  auto model = convert(source.onnx, unconverted, [&] {
    const auto places = input_model->get_inputs();
    for (const auto& [input, shape] : shapes->changes) input_model->set_partial_shape(places[input], shape);
    return frontend->convert(input_model);
  });
  if (!model) return failed;
  model->assumed = shapes->assumed;
  return model;
}

void reshape(ov::Model& model, const InputShapes& shapes) {
  std::map<ov::Output<ov::Node>, ov::PartialShape> changes;
  for (const auto& [input, shape] : shapes.changes) changes[model.get_parameters()[input]->output(0)] = shape;
  model.reshape(changes);
}

// Sets the input shapes and infers the others op by op, as the standard defines them, in a fraction of
// reshape()'s time. False if the shapes do not fit or not all can be inferred.
bool takes_shapes(const std::shared_ptr<ov::Model>& model, const InputShapes& shapes) {
  try {
    std::vector<const ov::Node*> changed;
    for (const auto& [input, shape] : shapes.changes) {
      const auto& parameter = model->get_parameters()[input];
      parameter->set_partial_shape(shape);
      parameter->validate_and_infer_types();
      changed.push_back(parameter.get());
    }
    fold_shapes(*model, changed);
    return is_static(*model);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Result<ReadModel> read_openvino(const ReadSource& source, const ImportOptions& options,
                                Unconverted& unconverted) {
  const auto* onnx = source.onnx;
  unconverted = {};
  const auto read = [&] { return convert(onnx, unconverted, [&] { return read_model(source); }); };
  auto first = read();
  ReadModel result;
  InputShapes shapes;
  if (first) {
    HEDDLE_ASSIGN_OR_RETURN(shapes, wanted_shapes(*first->model, options, onnx));
    first->assumed = shapes.assumed;
    if (!shapes.changes.empty()) {
      if (takes_shapes(first->model, shapes)) return first;
      // reshape() also rewrites ops with built-in sizes, but it cannot start from half-inferred nodes.
      HEDDLE_ASSIGN_OR_RETURN(first, read());
      first->assumed = shapes.assumed;
    }
    result = std::move(*first);
  } else {
    if (onnx == nullptr) return first.error();
    HEDDLE_ASSIGN_OR_RETURN(result, read_with_shapes(source, options, unconverted, first.error()));
  }
  try {
    if (!shapes.changes.empty()) reshape(*result.model, shapes);
    fold_shapes(*result.model, {});
    Status typed = check_types(*result.model, onnx);
    unconverted.failed = !typed.ok();
    HEDDLE_RETURN_IF_ERROR(std::move(typed));
    result.sized = size_outputs(*result.model);
  } catch (const std::exception& e) {
    return invalid_input("the shapes do not fit: " + openvino_reason(e.what()));
  }
  return result;
}

Result<std::shared_ptr<ov::Model>> read_open(const std::string& path, const OnnxModel* onnx,
                                             const std::string* skeleton) {
  Unconverted unconverted;
  HEDDLE_ASSIGN_OR_RETURN(auto read, convert(onnx, unconverted, [&] {
                            return read_model({.path = path, .onnx = onnx, .skeleton = skeleton});
                          }));
  return std::move(read.model);
}

void load_onnx_frontend() {
  try {
    (void)onnx_frontend();
  } catch (...) {
    // Ignored: the import that follows reports the error.
  }
}

}  // namespace heddle::internal
