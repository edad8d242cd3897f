// Converts an ov::Model to a Graph.
#include <algorithm>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/not_equal.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/op_types.hpp>
#include <unordered_set>

#include "heddle/base/spelling.h"
#include "model_impl.h"
#include "onnxruntime/region_op.h"

namespace heddle::internal {
namespace {

using ov::Node;
using Output = ov::Output<Node>;

// A value that a node other than a model output reads and whose shape inference leaves open.
bool is_open(const Output& output) {
  return output.get_partial_shape().is_dynamic() && !output.get_target_inputs().empty();
}

// Ops with equal inputs but different outputs each time: never constant.
bool is_random(const Node& node) {
  if (ov::is_type<OnnxRegion>(&node)) return true;  // may have such nodes
  const std::string_view type = node.get_type_name();
  return type == "RandomUniform" || type == "Multinomial" || type == "RandomPoisson";
}

class GraphMaker {
 public:
  GraphMaker(const std::shared_ptr<ov::Model>& model, const std::string& name, const OnnxModel* onnx,
             Model::Impl& impl)
      : model_(model), onnx_(onnx), impl_(impl), builder_(name) {}

  Result<std::shared_ptr<const Graph>> run() {
    sort_nodes();
    names_ = name_model(*model_, ops_, onnx_);
    HEDDLE_RETURN_IF_ERROR(add_inputs());
    const auto groups = group_nodes(ops_, [this](const Output& output) { return !crosses_segments(output); });
    for (const auto& group : groups) HEDDLE_RETURN_IF_ERROR(add_op(group));
    for (const auto& result : model_->get_results())
      builder_.add_output(impl_.tensor_of(result->input_value(0)));
    return builder_.build();
  }

 private:
  // Constants are leaves, and nodes computed from constants only. A node that a model output reads becomes an
  // op even so, because a plan must produce it; so does one whose shape is open.
  void sort_nodes() {
    std::unordered_set<const Node*> results;
    for (const auto& result : model_->get_results()) results.insert(result->input_value(0).get_node());
    for (const auto& node : model_->get_ordered_ops()) {
      if (ov::op::util::is_parameter(node) || ov::op::util::is_output(node)) continue;
      bool constant = ov::op::util::is_constant(node);
      if (!constant && node->get_input_size() > 0 && !is_random(*node) &&
          !std::dynamic_pointer_cast<ov::op::util::MultiSubGraphOp>(node)) {
        constant = std::ranges::none_of(node->outputs(), is_open);
        for (const auto& input : node->input_values())
          constant = constant && constants_.contains(input.get_node());
      }
      if (constant && !results.contains(node.get()))
        constants_.insert(node.get());
      else
        ops_.push_back(node);
    }
  }

  Status check_output(const Output& output, const std::string& what) const {
    const DType type = dtype_of(output.get_element_type());
    const auto& shape = output.get_partial_shape();
    if (type == DType::kString)
      return unsupported(
          what +
          " is made of strings; plans move tensors of numbers, so turn text into numbers before the model");
    if (type == DType::kUndefined) {
      return unsupported(what + " has type " + output.get_element_type().get_type_name() +
                         ", which is not supported");
    }
    if (shape.is_dynamic() && !output.get_target_inputs().empty())
      return unsupported(
          what + " has the shape " + shape.to_string() +
          ", which depends on data and has no limit; plans need sizes, or limits of them, that follow "
          "from those of the inputs: " +
          size_advice(*output.get_node()));
    return {};
  }

  // Sizes are values of vectors and scalars, so only inputs of such a rank can give them.
  std::string size_advice(const Node& node) const {
    constexpr int kMostNamed = 12;
    int named = 0;
    std::string texts;
    std::unordered_set<const Node*> seen = {&node};
    std::vector<const Node*> left = {&node};
    while (!left.empty()) {
      const Node* at = left.back();
      left.pop_back();
      for (const auto& input : at->input_values())
        if (seen.insert(input.get_node()).second) left.push_back(input.get_node());
    }
    for (const auto& p : model_->get_parameters()) {
      const auto& shape = p->get_output_partial_shape(0);
      if (onnx_ == nullptr || !seen.contains(p.get()) || shape.rank().is_dynamic() || shape.size() > 1)
        continue;
      if (++named > kMostNamed) break;
      const auto& name = p->get_friendly_name();
      const std::string role = role_of_input(*onnx_, name);
      texts += (texts.empty() ? "--value " : ", --value ") + name + "=" + sample_values(shape) +
               (role.empty() ? "" : " (" + role + ")");
    }
    if (texts.empty()) return "export the model so that this size is fixed";
    return "export the model so that this size is fixed, or give the values of inputs that set it: " + texts;
  }

  // "V1,V2,V3" for a vector of three.
  static std::string sample_values(const ov::PartialShape& shape) {
    constexpr int64_t kShown = 8;
    if (shape.is_dynamic() || shape.size() > 1) return "V1,V2,...";
    const int64_t count = shape.size() == 0 ? 1 : shape[0].get_length();
    std::string text = "V1";
    for (int64_t i = 2; i <= std::min(count, kShown); ++i) text += ",V" + std::to_string(i);
    return count > kShown ? text + ",..." : text;
  }

  // A tensor of the graph must have a size and a type.
  bool crosses_segments(const Output& output) const {
    const DType type = dtype_of(output.get_element_type());
    if (type == DType::kString || type == DType::kUndefined) return false;
    const auto* region = ov::as_type<OnnxRegion>(output.get_node());
    if (region != nullptr && !region->has_final_type(output.get_index())) return false;
    return output.get_partial_shape().is_static();
  }

  // {0} for an output of unknown shape.
  static Shape known_shape(const Output& output) {
    return output.get_partial_shape().is_static() ? shape_of(output) : Shape{0};
  }

  std::string tensor_name(const std::string& wanted, const std::string& fallback) {
    return tensor_names_.make(wanted.empty() ? fallback : wanted);
  }

  // `name` is the tensor's name. All other ONNX names of the value lead to the tensor too.
  void remember(const Output& output, TensorId id, const std::string& name) {
    auto& ports = impl_.tensors[output.get_node()];
    ports.resize(output.get_node()->get_output_size());
    ports[output.get_index()] = id;
    impl_.outputs.push_back(output);
    impl_.onnx_names.emplace(name, id);
    for (const auto& alias : names_.aliases[output.get_node()][output.get_index()])
      impl_.onnx_names.emplace(alias, id);
    output.get_tensor().add_names({name});
  }

  Status add_inputs() {
    for (const auto& p : model_->get_parameters()) {
      HEDDLE_RETURN_IF_ERROR(check_output(p->output(0), "input " + quote_text(p->get_friendly_name())));
      const std::string name = tensor_name(names_.tensors[p.get()][0], "input");
      remember(p->output(0),
               builder_.add_input(name, dtype_of(p->get_output_element_type(0)), shape_of(p->output(0))),
               name);
    }
    return {};
  }

  // A shared constant is one Param: the same node, or another node with the same memory.
  ParamId param_of(const Output& output) {
    const auto key = std::pair<const Node*, size_t>(output.get_node(), output.get_index());
    if (const auto it = params_.find(key); it != params_.end()) return it->second;
    const auto* constant = dynamic_cast<const ov::op::v0::Constant*>(output.get_node());
    const void* data =
        constant != nullptr && constant->get_byte_size() > 0 ? constant->get_data_ptr() : nullptr;
    const auto memory = std::pair<const void*, std::string>(
        data, output.get_element_type().get_type_name() + shape_text(shape_of(output)));
    if (const auto it = by_memory_.find(memory); data != nullptr && it != by_memory_.end())
      return params_[key] = it->second;
    const DType dtype = dtype_of(output.get_element_type());
    const auto id =
        builder_.add_param({param_name(output), tensor_bytes(dtype, shape_of(output)).value_or(0), dtype});
    if (data != nullptr) by_memory_[memory] = id;
    return params_[key] = id;
  }

  std::string param_name(const Output& output) {
    const auto& names = output.get_names();
    std::string wanted = names.empty() ? std::string() : *std::min_element(names.begin(), names.end());
    // The importer numbers its own constants across all models of a process: such names are not stable.
    const auto* node = output.get_node();
    if (wanted.empty() && onnx_ == nullptr && node->get_friendly_name() != node->get_name())
      wanted = node->get_friendly_name();
    return param_names_.make(wanted.empty() ? current_op_ + ".constant" : wanted);
  }

  // Weights inside the bodies of If, Loop and similar ops belong to the op.
  void add_body_params(const Node& node, std::vector<ParamId>& params) {
    const auto* multi = dynamic_cast<const ov::op::util::MultiSubGraphOp*>(&node);
    if (multi == nullptr) return;
    for (const auto& body : multi->get_functions()) {
      if (!body) continue;
      for (const auto& inner : body->get_ordered_ops()) {
        if (ov::op::util::is_constant(inner))
          add_param(param_of(inner->output(0)), params);
        else
          add_body_params(*inner, params);
      }
    }
  }

  static void add_param(ParamId id, std::vector<ParamId>& params) {
    if (std::find(params.begin(), params.end(), id) == params.end()) params.push_back(id);
  }

  int64_t bytes_of(const Output& output) const {
    return tensor_bytes(dtype_of(output.get_element_type()), known_shape(output)).value_or(0);
  }

  static bool leaves(const Output& output, const NodeGroup& group) {
    const auto readers = output.get_target_inputs();
    return std::ranges::any_of(readers, [&](const auto& reader) {
      return std::ranges::none_of(group, [&](const auto& node) { return node.get() == reader.get_node(); });
    });
  }

  // Adds what one of the op's nodes reads.
  Status add_reads(Node& node, const std::unordered_set<const Node*>& own, Op& op) {
    for (const auto& input : node.input_values()) {
      if (own.contains(input.get_node())) continue;
      if (constants_.contains(input.get_node())) {
        HEDDLE_RETURN_IF_ERROR(
            check_output(input, "op " + quote_text(op.name) + " (" + op.type + "): a constant input"));
        add_param(param_of(input), op.params);
      } else {
        op.inputs.push_back(impl_.tensor_of(input));
      }
      op.bytes_accessed += bytes_of(input);
    }
    if (ov::op::util::is_constant(&node)) add_param(param_of(node.output(0)), op.params);
    add_body_params(node, op.params);
    const auto* region = ov::as_type<OnnxRegion>(&node);
    if (region != nullptr && region->program().weight_bytes > 0)
      add_param(builder_.add_param({param_names_.make(current_op_ + ".weights"),
                                    region->program().weight_bytes, DType::kU8}),
                op.params);
    return {};
  }

  // One region of the file, with what converts its outputs' types.
  static bool is_onnx_region(const NodeGroup& group) {
    if (!ov::is_type<OnnxRegion>(group.front())) return false;
    return std::all_of(group.begin() + 1, group.end(), [&](const auto& node) {
      const bool converts = ov::is_type<ov::op::v0::Convert>(node) || ov::is_type<ov::op::v1::NotEqual>(node);
      return converts && node->input_value(0).get_node() == group.front().get();
    });
  }

  // The error of the group's first value that cannot be a tensor, from which the others have their shapes.
  Error first_fault(const NodeGroup& group) const {
    for (const auto& node : group) {
      for (const auto& output : node->outputs()) {
        const Status status = check_output(output, "op " + quote_text(names_.ops.at(node.get())) + " (" +
                                                       node->get_type_name() + "): its output");
        if (!status.ok()) return status.error();
      }
    }
    return internal_error("every output of a region is a tensor");
  }

  // Values that stay inside a region are no tensors of the graph.
  Result<std::vector<Output>> outputs_of(const NodeGroup& group, const Op& op) const {
    std::vector<Output> outputs;
    for (const auto& node : group) {
      for (const auto& output : node->outputs()) {
        if (group.size() > 1 && !leaves(output, group)) continue;
        if (!check_output(output, op.name).ok()) return first_fault(group);
        outputs.push_back(output);
      }
    }
    return outputs;
  }

  Tensor tensor_for(const Output& output, const std::string& op) {
    Tensor tensor;
    const size_t port = output.get_index();
    tensor.name = tensor_name(names_.tensors[output.get_node()][port],
                              port == 0 ? op : op + ":" + std::to_string(port));
    tensor.dtype = dtype_of(output.get_element_type());
    tensor.shape = known_shape(output);
    return tensor;
  }

  Status add_op(const NodeGroup& group) {
    const auto& last = group.back();
    Op op;
    op.name = current_op_ = names_.ops[last.get()];
    op.type = group.size() == 1 ? last->get_type_name() : "Region";
    if (is_onnx_region(group)) op.type = group.front()->get_type_name();
    std::unordered_set<const Node*> own;
    for (const auto& node : group) own.insert(node.get());
    for (const auto& node : group) {
      const auto* region = ov::as_type<OnnxRegion>(node.get());
      for (const auto& name : region != nullptr ? region->program().nodes : names_.onnx_nodes[node.get()])
        if (std::ranges::find(op.onnx_names, name) == op.onnx_names.end()) op.onnx_names.push_back(name);
      op.flops += node_flops(*node);
      HEDDLE_RETURN_IF_ERROR(add_reads(*node, own, op));
      node->set_friendly_name(names_.ops[node.get()]);
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, outputs_of(group, op));
    std::vector<Tensor> tensors;
    for (const auto& output : outputs) {
      tensors.push_back(tensor_for(output, names_.ops[output.get_node()]));
      op.bytes_accessed += bytes_of(output);
    }
    const OpId id = builder_.add_op(std::move(op), tensors);
    impl_.nodes.push_back(last);
    if (group.size() > 1) impl_.regions.emplace(id, group);
    for (const auto& node : group) {
      impl_.ops[node.get()] = id;
      impl_.tensors[node.get()].resize(node->get_output_size());
    }
    const auto made = builder_.outputs_of(id);
    for (size_t i = 0; i < outputs.size(); ++i) remember(outputs[i], made[i], tensors[i].name);
    return {};
  }

  std::shared_ptr<ov::Model> model_;
  const OnnxModel* onnx_;
  Model::Impl& impl_;
  GraphBuilder builder_;
  ModelNames names_;
  std::vector<std::shared_ptr<Node>> ops_;
  std::unordered_set<const Node*> constants_;
  UniqueNames tensor_names_, param_names_;
  std::map<std::pair<const Node*, size_t>, ParamId> params_;
  std::map<std::pair<const void*, std::string>, ParamId> by_memory_;
  std::string current_op_;
};

}  // namespace

DType dtype_of(const ov::element::Type& type) {
  using Type = ov::element::Type_t;
  static const std::unordered_map<Type, DType> known = {
      {Type::boolean, DType::kBool}, {Type::u1, DType::kU1},     {Type::i4, DType::kI4},
      {Type::u4, DType::kU4},        {Type::i8, DType::kI8},     {Type::u8, DType::kU8},
      {Type::i16, DType::kI16},      {Type::u16, DType::kU16},   {Type::i32, DType::kI32},
      {Type::u32, DType::kU32},      {Type::i64, DType::kI64},   {Type::u64, DType::kU64},
      {Type::f4e2m1, DType::kF4},    {Type::f8e4m3, DType::kF8}, {Type::f8e5m2, DType::kF8},
      {Type::f8e8m0, DType::kF8},    {Type::f16, DType::kF16},   {Type::bf16, DType::kBF16},
      {Type::f32, DType::kF32},      {Type::f64, DType::kF64},   {Type::string, DType::kString}};
  const auto it = known.find(type);
  return it == known.end() ? DType::kUndefined : it->second;
}

Shape shape_of(const ov::Output<ov::Node>& output) {
  const auto& shape = output.get_shape();
  return Shape(shape.begin(), shape.end());
}

Result<std::shared_ptr<const Graph>> make_graph(const std::shared_ptr<ov::Model>& model,
                                                const std::string& name, const OnnxModel* onnx,
                                                Model::Impl& impl) {
  return GraphMaker(model, name, onnx, impl).run();
}

}  // namespace heddle::internal
