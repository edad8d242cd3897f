// What depends on shapes alone is known once the shapes are: it becomes constants, so that it neither counts
// as work nor ties segments together.
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/shape_of_base.hpp>

#include "openvino_reader.h"

namespace heddle::internal {
namespace {

// Index arithmetic is small; larger constants are weights, which the device's compiler folds for itself (so
// that import copies none).
constexpr size_t kMaxFoldedBytes = 64 << 10;

bool small(const ov::Node& node) {
  size_t bytes = 0;
  for (const auto& output : node.outputs()) {
    if (output.get_partial_shape().is_dynamic() || output.get_element_type().is_dynamic()) return false;
    // Too large dimensions are refused later; here they must only not overflow.
    size_t elements = 1;
    for (const auto d : output.get_shape())
      if (d > kMaxFoldedBytes || (elements *= d) > kMaxFoldedBytes) return false;
    bytes += elements * ((output.get_element_type().bitwidth() + 7) / 8);
  }
  return bytes <= kMaxFoldedBytes;
}

bool fold_shape_of(const std::shared_ptr<ov::Node>& node) {
  if (!std::dynamic_pointer_cast<ov::op::util::ShapeOfBase>(node) ||
      node->get_input_partial_shape(0).is_dynamic())
    return false;
  const auto& shape = node->get_input_shape(0);
  const auto constant =
      ov::op::v0::Constant::create(node->get_output_element_type(0), ov::Shape{shape.size()},
                                   std::vector<int64_t>(shape.begin(), shape.end()));
  constant->set_friendly_name(node->get_friendly_name());
  node->output(0).replace(constant->output(0));
  return true;
}

bool fold_small(const std::shared_ptr<ov::Node>& node) {
  if (node->get_input_size() == 0 || node->get_output_size() == 0 ||
      !node->can_constant_fold(node->input_values()))
    return false;
  if (std::dynamic_pointer_cast<ov::op::util::MultiSubGraphOp>(node)) return false;
  for (const auto& input : node->input_values())
    if (!ov::as_type_ptr<ov::op::v0::Constant>(input.get_node_shared_ptr())) return false;
  if (!small(*node)) return false;
  ov::OutputVector folded(node->get_output_size());
  if (!node->constant_fold(folded, node->input_values())) return false;
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i].get_node_shared_ptr()) return false;
    folded[i].get_node_shared_ptr()->set_friendly_name(node->get_friendly_name());
  }
  for (size_t i = 0; i < folded.size(); ++i) node->output(i).replace(folded[i]);
  return true;
}

}  // namespace

void fold_shapes(const std::shared_ptr<ov::Model>& model) {
  bool changed = false;
  for (const auto& node : model->get_ordered_ops()) {
    if (ov::as_type_ptr<ov::op::v0::Constant>(node) || ov::as_type_ptr<ov::op::v0::Result>(node) ||
        ov::as_type_ptr<ov::op::v0::Parameter>(node)) {
      continue;
    }
    // What changed before it in the order may have made its shape known.
    if (changed) node->validate_and_infer_types();
    changed |= fold_shape_of(node) || fold_small(node);
  }
  if (changed) model->validate_nodes_and_infer_types();
}

}  // namespace heddle::internal
