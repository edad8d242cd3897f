// Folds values that depend on shapes alone into constants once shapes are known, so that they neither count
// as work nor connect segments.
#include <algorithm>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/identity.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/shape_of_base.hpp>
#include <unordered_set>

#include "openvino_reader.h"

namespace heddle::internal {
namespace {

// Index arithmetic is small. Larger constants are weights: the device's compiler folds those.
constexpr size_t kMaxFoldedBytes = 64 << 10;
// Upper limit on the length of shapes, axes, scales and bounds.
constexpr size_t kMostShapeValues = 1024;

bool small(const ov::Node& node) {
  size_t bytes = 0;
  for (const auto& output : node.outputs()) {
    if (output.get_partial_shape().is_dynamic() || output.get_element_type().is_dynamic()) return false;
    // Too large dimensions are rejected later; here they only must not overflow.
    size_t elements = 1;
    for (const auto d : output.get_shape()) {
      if (d > kMaxFoldedBytes) return false;
      elements *= d;
      if (elements > kMaxFoldedBytes) return false;
    }
    bytes += elements * ((output.get_element_type().bitwidth() + 7) / 8);
  }
  return bytes <= kMaxFoldedBytes;
}

// True if readers may take shapes from the node's values: some output is short or of unknown shape.
bool may_give_shapes(const ov::Node& node) {
  for (const auto& output : node.outputs()) {
    const auto& shape = output.get_partial_shape();
    if (shape.is_dynamic() || ov::shape_size(shape.get_shape()) <= kMostShapeValues) return true;
  }
  return false;
}

using Changed = std::unordered_set<const ov::Node*>;

// Infers the node again if an input has changed, and records whether the node changed too.
void infer_again(ov::Node& node, Changed& changed) {
  const auto inputs = node.input_values();
  if (std::none_of(inputs.begin(), inputs.end(),
                   [&](const auto& i) { return changed.contains(i.get_node()); }))
    return;
  std::vector<std::pair<ov::element::Type, ov::PartialShape>> before;
  for (const auto& output : node.outputs())
    before.emplace_back(output.get_element_type(), output.get_partial_shape());
  node.validate_and_infer_types();
  bool same = before.size() == node.get_output_size() && !may_give_shapes(node);
  for (size_t i = 0; same && i < before.size(); ++i) {
    same = before[i].first == node.get_output_element_type(i) &&
           before[i].second == node.get_output_partial_shape(i);
  }
  if (!same) changed.insert(&node);
}

// Lets the node's readers read its input instead. Shape inference does not look through an Identity, so shapes
// that are computed behind it would stay open. Model outputs keep theirs: a plan needs an op that makes them.
bool bypass_identity(const std::shared_ptr<ov::Node>& node, Changed& changed) {
  if (!ov::as_type_ptr<ov::op::v16::Identity>(node)) return false;
  const auto source = node->input_value(0);
  for (auto reader : node->output(0).get_target_inputs())
    if (!ov::is_type<ov::op::v0::Result>(reader.get_node())) reader.replace_source_output(source);
  if (node->output(0).get_target_inputs().empty()) source.get_tensor().add_names(node->output(0).get_names());
  changed.insert(source.get_node());
  return true;
}

bool fold_shape_of(const std::shared_ptr<ov::Node>& node, Changed& changed) {
  if (!std::dynamic_pointer_cast<ov::op::util::ShapeOfBase>(node) ||
      node->get_input_partial_shape(0).is_dynamic())
    return false;
  const auto& shape = node->get_input_shape(0);
  const auto constant =
      ov::op::v0::Constant::create(node->get_output_element_type(0), ov::Shape{shape.size()},
                                   std::vector<int64_t>(shape.begin(), shape.end()));
  constant->set_friendly_name(node->get_friendly_name());
  node->output(0).replace(constant->output(0));
  changed.insert(constant.get());
  return true;
}

void fold_small(const std::shared_ptr<ov::Node>& node, Changed& changed) {
  if (node->get_input_size() == 0 || node->get_output_size() == 0 ||
      !node->can_constant_fold(node->input_values()))
    return;
  if (std::dynamic_pointer_cast<ov::op::util::MultiSubGraphOp>(node)) return;
  for (const auto& input : node->input_values())
    if (!ov::as_type_ptr<ov::op::v0::Constant>(input.get_node_shared_ptr())) return;
  if (!small(*node)) return;
  ov::OutputVector folded(node->get_output_size());
  if (!node->constant_fold(folded, node->input_values())) return;
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i].get_node_shared_ptr()) return;
    folded[i].get_node_shared_ptr()->set_friendly_name(node->get_friendly_name());
  }
  for (size_t i = 0; i < folded.size(); ++i) {
    node->output(i).replace(folded[i]);
    changed.insert(folded[i].get_node());
  }
}

}  // namespace

void fold_shapes(ov::Model& model, std::span<const ov::Node* const> changed_inputs) {
  Changed changed(changed_inputs.begin(), changed_inputs.end());
  for (const auto& node : model.get_ordered_ops()) {
    if (ov::as_type_ptr<ov::op::v0::Constant>(node) || ov::as_type_ptr<ov::op::v0::Parameter>(node)) continue;
    if (!changed.empty()) infer_again(*node, changed);
    if (ov::as_type_ptr<ov::op::v0::Result>(node)) continue;
    if (!bypass_identity(node, changed) && !fold_shape_of(node, changed)) fold_small(node, changed);
  }
}

}  // namespace heddle::internal
