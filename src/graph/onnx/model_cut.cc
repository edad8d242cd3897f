// Model::cut(): a convex set of ops as a model of its own.
#include <algorithm>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <unordered_map>
#include <unordered_set>

#include "heddle/base/spelling.h"
#include "heddle/graph/analysis.h"
#include "model_impl.h"

namespace heddle {
namespace {

class Cutter {
 public:
  Cutter(const Graph& graph, const Model::Impl& impl, std::vector<OpId> ops)
      : graph_(graph), impl_(impl), ops_(std::move(ops)) {}

  SegmentModel run() {
    std::sort(ops_.begin(), ops_.end(), [&](OpId a, OpId b) {
      return graph_.topological_position(a) < graph_.topological_position(b);
    });
    inside_.insert(ops_.begin(), ops_.end());
    add_inputs();
    for (const auto op : ops_) add_op(op);
    return finish();
  }

 private:
  void add_inputs() {
    for (const auto op : ops_) {
      for (const auto tensor : graph_.op(op).inputs) {
        if (!inside_.contains(graph_.tensor(tensor).producer)) result_.inputs.push_back(tensor);
      }
    }
    sort_distinct(result_.inputs);
    for (const auto tensor : result_.inputs) {
      const auto& output = impl_.outputs[tensor.index()];
      const auto parameter =
          std::make_shared<ov::op::v0::Parameter>(output.get_element_type(), output.get_shape());
      name(parameter, 0, tensor);
      parameter->set_friendly_name(graph_.tensor(tensor).name);
      parameters_.push_back(parameter);
      values_.emplace(tensor, parameter->output(0));
    }
  }

  static void sort_distinct(std::vector<TensorId>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  void name(const std::shared_ptr<ov::Node>& node, size_t port, TensorId tensor) const {
    node->output(port).get_tensor().set_names({graph_.tensor(tensor).name});
  }

  // A constant, or an expression of constants only, sharing its memory. An iterative post-order walk.
  ov::Output<ov::Node> constant(const ov::Output<ov::Node>& wanted) {
    std::vector<const ov::Node*> stack = {wanted.get_node()};
    while (!stack.empty()) {
      const auto* node = stack.back();
      ov::OutputVector inputs;
      for (const auto& source : node->input_values()) {
        const auto it = constants_.find(source.get_node());
        if (it != constants_.end())
          inputs.push_back(it->second->output(source.get_index()));
        else
          stack.push_back(source.get_node());
      }
      if (inputs.size() < node->get_input_size()) continue;
      if (!constants_.contains(node)) constants_[node] = node->copy_with_new_inputs(inputs);
      stack.pop_back();
    }
    return constants_[wanted.get_node()]->output(wanted.get_index());
  }

  void add_op(OpId op) {
    std::unordered_map<const ov::Node*, std::shared_ptr<ov::Node>> clones;  // of the op's own nodes
    for (const auto& node : impl_.nodes_of(op)) {
      ov::OutputVector inputs;
      for (const auto& source : node->input_values()) {
        const TensorId tensor = impl_.tensor_of(source);
        const auto inner = clones.find(source.get_node());
        inputs.push_back(inner != clones.end() ? inner->second->output(source.get_index())
                         : tensor.valid()      ? values_.at(tensor)
                                               : constant(source));
      }
      const auto clone = node->copy_with_new_inputs(inputs);
      clone->set_friendly_name(node == impl_.nodes[op.index()] ? graph_.op(op).name
                                                               : node->get_friendly_name());
      clones.emplace(node.get(), clone);
    }
    for (const auto tensor : graph_.op(op).outputs) {
      const auto& output = impl_.outputs[tensor.index()];
      const auto& clone = clones.at(output.get_node());
      name(clone, output.get_index(), tensor);
      values_.emplace(tensor, clone->output(output.get_index()));
    }
  }

  // True when an op outside reads the tensor or it is a model output.
  bool leaves(TensorId tensor) const {
    for (const auto consumer : graph_.tensor(tensor).consumers)
      if (!inside_.contains(consumer)) return true;
    const auto outputs = graph_.outputs();
    return std::find(outputs.begin(), outputs.end(), tensor) != outputs.end();
  }

  SegmentModel finish() {
    for (const auto op : ops_)
      for (const auto tensor : graph_.op(op).outputs)
        if (leaves(tensor)) result_.outputs.push_back(tensor);
    sort_distinct(result_.outputs);
    ov::ResultVector results;
    for (const auto tensor : result_.outputs) {
      results.push_back(std::make_shared<ov::op::v0::Result>(values_.at(tensor)));
      results.back()->set_friendly_name(graph_.tensor(tensor).name + "/result");
    }
    result_.model = std::make_shared<ov::Model>(results, parameters_, graph_.op(ops_.front()).name);
    return std::move(result_);
  }

  const Graph& graph_;
  const Model::Impl& impl_;
  std::vector<OpId> ops_;
  std::unordered_set<OpId> inside_;
  std::unordered_map<const ov::Node*, std::shared_ptr<ov::Node>> constants_;
  std::unordered_map<TensorId, ov::Output<ov::Node>> values_;
  ov::ParameterVector parameters_;
  SegmentModel result_;
};

}  // namespace

Result<SegmentModel> Model::cut(std::span<const OpId> ops) const {
  std::vector<OpId> set(ops.begin(), ops.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  if (set.empty()) return invalid_input("a segment needs at least one op");
  if (!set.front().valid() || set.back().index() >= graph_->num_ops())
    return invalid_input("a segment names an op that the model does not have");
  if (!is_convex(*graph_, set)) {
    return invalid_input("the segment around op " + quote_text(graph_->op(set.front()).name) +
                         " is not convex: a path leaves it and comes back");
  }
  try {
    return Cutter(*graph_, *impl_, std::move(set)).run();
  } catch (const std::exception& e) {
    return internal_error(std::string("a segment cannot be cut out: ") + e.what());
  }
}

}  // namespace heddle
