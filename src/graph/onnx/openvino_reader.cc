#include "openvino_reader.h"

#include <map>
#include <mutex>
#include <openvino/core/model.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/op/util/assign_base.hpp>
#include <openvino/op/util/read_value_base.hpp>
#include <openvino/runtime/core.hpp>
#include <sstream>
#include <unordered_set>

#include "heddle/base/errors.h"
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

// `path` is the file that the skeleton belongs to; its weights are mapped.
std::shared_ptr<ov::Model> read_skeleton(const std::string& skeleton, const std::string& path) {
  std::istringstream stream(skeleton);
  const auto frontend = onnx_frontend();
  return frontend->convert(frontend->load(static_cast<std::istream*>(&stream), path, true));
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

Status check_stateless(const ov::Model& model) {
  for (const auto& node : model.get_ops()) {
    if (std::dynamic_pointer_cast<ov::op::util::ReadValueBase>(node) ||
        std::dynamic_pointer_cast<ov::op::util::AssignBase>(node)) {
      return unsupported("op " + quote_text(node->get_friendly_name()) + " (" + node->get_type_name() +
                         ") keeps state between runs; models with state are not supported");
    }
  }
  return {};
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

Result<std::shared_ptr<ov::Model>> convert(const std::string& path, const OnnxModel* onnx,
                                           const std::string* skeleton) {
  std::shared_ptr<ov::Model> model;
  try {
    model = skeleton != nullptr ? read_skeleton(*skeleton, path) : core().read_model(path);
    if (onnx != nullptr) name_ends(*model, *onnx);
  } catch (const std::exception& e) {
    return conversion_error(e.what(), onnx);
  } catch (...) {
    return invalid_input("OpenVINO's importer failed without a reason");
  }
  HEDDLE_RETURN_IF_ERROR(check_stateless(*model));
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

Result<ReadModel> read_openvino(const std::string& path, const ImportOptions& options, const OnnxModel* onnx,
                                const std::string* skeleton) {
  HEDDLE_ASSIGN_OR_RETURN(auto model, convert(path, onnx, skeleton));
  HEDDLE_ASSIGN_OR_RETURN(const auto shapes, wanted_shapes(*model, options));
  if (!shapes.changes.empty()) {
    if (takes_shapes(model, shapes)) return ReadModel{model, shapes.assumed};
    // reshape() also rewrites ops with built-in sizes, but it cannot start from half-inferred nodes.
    HEDDLE_ASSIGN_OR_RETURN(model, convert(path, onnx, skeleton));
  }
  try {
    if (!shapes.changes.empty()) reshape(*model, shapes);
    fold_shapes(*model, {});
    HEDDLE_RETURN_IF_ERROR(check_types(*model, onnx));
  } catch (const std::exception& e) {
    return invalid_input("the shapes do not fit: " + openvino_reason(e.what()));
  }
  return ReadModel{model, shapes.assumed};
}

void load_onnx_frontend() {
  try {
    (void)onnx_frontend();
  } catch (...) {
    // Ignored: the import that follows reports the error.
  }
}

}  // namespace heddle::internal
