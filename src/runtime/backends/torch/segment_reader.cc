// Converts a cut OpenVINO model to ops for the kernels.
#include <charconv>
#include <map>
#include <openvino/core/attribute_visitor.hpp>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/loop.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include "backends/openvino/openvino_session.h"
#include "op_node.h"

namespace heddle::torch_backend {
namespace {

using Parent = ov::op::util::MultiSubGraphOp;

BodyInput input_of(const Parent::InputDescription& given) {
  BodyInput input{.input = given.m_input_index, .parameter = given.m_body_parameter_index};
  if (const auto* merged = dynamic_cast<const Parent::MergedInputDescription*>(&given))
    input.fed_back = merged->m_body_value_index;
  if (const auto* slice = dynamic_cast<const Parent::SliceInputDescription*>(&given)) {
    input.sliced = true;
    input.axis = slice->m_axis;
    input.start = slice->m_start;
    input.stride = slice->m_stride;
    input.part = slice->m_part_size;
    input.end = slice->m_end;
  }
  return input;
}

Result<BodyOutput> output_of(const Parent& op, const Parent::OutputDescription& given) {
  BodyOutput output{.result = given.m_body_value_index, .output = given.m_output_index};
  if (const auto* joined = dynamic_cast<const Parent::ConcatOutputDescription*>(&given)) {
    output.joined = true;
    output.axis = joined->m_axis;
    output.stride = joined->m_stride;
  } else if (const auto* last = dynamic_cast<const Parent::BodyOutputDescription*>(&given);
             last != nullptr && last->m_iteration != -1) {
    return unsupported("op '" + op.get_friendly_name() + "' (" + op.get_type_name() +
                       ") cannot run on libtorch: it gives the result of iteration " +
                       std::to_string(last->m_iteration) + "; expected the last one's");
  }
  return output;
}

// The branches of an If (then, else), or a loop's body.
Result<std::vector<OpBody>> read_bodies(const Parent& op);

class AttributeReader final : public ov::AttributeVisitor {
 public:
  explicit AttributeReader(std::map<std::string, Attribute>& into) : into_(into) {}

  // read_bodies() handles bodies of loops and port maps.
  void on_adapter(const std::string&, ov::ValueAccessor<void>&) override {}
  void on_adapter(const std::string&, ov::ValueAccessor<std::shared_ptr<ov::Model>>&) override {}
  void on_adapter(const std::string& name, ov::ValueAccessor<std::string>& a) override {
    into_[name] = a.get();
  }
  void on_adapter(const std::string& name, ov::ValueAccessor<bool>& a) override { into_[name] = a.get(); }
  void on_adapter(const std::string& name, ov::ValueAccessor<int64_t>& a) override { into_[name] = a.get(); }
  void on_adapter(const std::string& name, ov::ValueAccessor<double>& a) override { into_[name] = a.get(); }
  void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<int64_t>>& a) override {
    into_[name] = a.get();
  }
  void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<uint64_t>>& a) override {
    into_[name] = std::vector<int64_t>(a.get().begin(), a.get().end());
  }
  void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<float>>& a) override {
    into_[name] = std::vector<double>(a.get().begin(), a.get().end());
  }
  void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<double>>& a) override {
    into_[name] = a.get();
  }
  void on_adapter(const std::string& name, ov::ValueAccessor<std::vector<std::string>>& a) override {
    into_[name] = a.get();
  }

 private:
  std::map<std::string, Attribute>& into_;
};

FloatCode float_code(const ov::element::Type& type) {
  using Type = ov::element::Type_t;
  constexpr std::pair<Type, FloatCode> kCodes[] = {{Type::f8e4m3, FloatCode::kE4M3},
                                                   {Type::f8e5m2, FloatCode::kE5M2},
                                                   {Type::f8e8m0, FloatCode::kE8M0},
                                                   {Type::f4e2m1, FloatCode::kE2M1}};
  for (const auto& [theirs, code] : kCodes) {
    if (type == ov::element::Type(theirs)) return code;
  }
  return FloatCode::kNone;
}

int opset_number(const ov::DiscreteTypeInfo& type) {
  const std::string_view version = type.version_id == nullptr ? "" : type.version_id;
  constexpr std::string_view kPrefix = "opset";
  int number = 0;
  if (version.starts_with(kPrefix))
    std::from_chars(version.data() + kPrefix.size(), version.data() + version.size(), number);
  return number;
}

class SegmentReader {
 public:
  Result<SegmentOps> run(const ov::Model& model) {
    for (const auto& parameter : model.get_parameters()) {
      ops_.inputs.push_back(value_of(parameter->output(0)));
      HEDDLE_ASSIGN_OR_RETURN(ValueType type, type_of(*parameter, parameter->output(0)));
      ops_.input_types.push_back(std::move(type));
    }
    for (const auto& node : model.get_ordered_ops()) {
      if (ov::as_type_ptr<ov::op::v0::Parameter>(node)) continue;
      if (ov::as_type_ptr<ov::op::v0::Result>(node)) continue;
      HEDDLE_RETURN_IF_ERROR(add(*node));
    }
    for (const auto& result : model.get_results()) {
      ops_.outputs.push_back(value_of(result->input_value(0)));
      HEDDLE_ASSIGN_OR_RETURN(ValueType type, type_of(*result, result->input_value(0)));
      ops_.output_types.push_back(std::move(type));
    }
    return std::move(ops_);
  }

 private:
  int value_of(const ov::Output<ov::Node>& output) {
    const auto [it, added] = values_.try_emplace({output.get_node(), output.get_index()}, ops_.num_values);
    if (added) ++ops_.num_values;
    return it->second;
  }

  template <class Output>
  static Result<ValueType> type_of(const ov::Node& node, const Output& output) {
    const FloatCode code = float_code(output.get_element_type());
    const auto dtype = code == FloatCode::kNone   ? openvino::dtype_of(output.get_element_type())
                       : code == FloatCode::kE2M1 ? DType::kF4
                                                  : DType::kF8;
    if (!dtype || dtype_bits(*dtype) < 4) {
      return unsupported(describe(node) + ": tensors of " + output.get_element_type().get_type_name() +
                         " cannot be handed to libtorch");
    }
    if (output.get_partial_shape().is_dynamic())
      return unsupported(describe(node) + " has a tensor whose shape is not known");
    const ov::Shape& shape = output.get_shape();
    return ValueType{*dtype, Shape(shape.begin(), shape.end()), code};
  }

  static std::string describe(const ov::Node& node) {
    return "op '" + node.get_friendly_name() + "' (" + node.get_type_name() + ")";
  }

  Status add(ov::Node& node) {
    OpNode op;
    op.type = node.get_type_name();
    op.opset = opset_number(node.get_type_info());
    op.name = node.get_friendly_name();
    for (const auto& input : node.input_values()) {
      HEDDLE_ASSIGN_OR_RETURN(ValueType type, type_of(node, input));
      op.inputs.push_back(std::move(type));
    }
    for (const auto& output : node.outputs()) {
      HEDDLE_ASSIGN_OR_RETURN(ValueType type, type_of(node, output));
      op.outputs.push_back(std::move(type));
      op.wanted.push_back(!output.get_target_inputs().empty());
    }
    if (const auto* constant = dynamic_cast<const ov::op::v0::Constant*>(&node)) {
      // A view has one kind of pointer, hence const_cast; constants are only read.
      auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(constant->get_data_ptr()));
      ops_.constants.push_back(
          {value_of(node.output(0)),
           {op.outputs[0].dtype, op.outputs[0].shape, data, static_cast<int64_t>(constant->get_byte_size())},
           op.outputs[0].code});
      return {};
    }
    AttributeReader reader(op.attributes);
    node.visit_attributes(reader);
    if (const auto* parent = dynamic_cast<const Parent*>(&node)) {
      HEDDLE_ASSIGN_OR_RETURN(op.bodies, read_bodies(*parent));
    }
    SegmentNode segment_node{.op = std::move(op), .reads = {}, .writes = {}};
    for (const auto& input : node.input_values()) segment_node.reads.push_back(value_of(input));
    for (const auto& output : node.outputs()) segment_node.writes.push_back(value_of(output));
    ops_.nodes.push_back(std::move(segment_node));
    return {};
  }

  SegmentOps ops_;
  std::map<std::pair<const ov::Node*, size_t>, int> values_;
};

Result<std::vector<OpBody>> read_bodies(const Parent& op) {
  std::vector<OpBody> bodies;
  for (size_t b = 0; b < op.get_internal_subgraphs_size(); ++b) {
    const auto index = static_cast<int>(b);
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, SegmentReader().run(*op.get_function(b)));
    ops.memory = op.get_function(b);
    OpBody body{.ops = std::make_shared<const SegmentOps>(std::move(ops))};
    for (const auto& given : op.get_input_descriptions(index)) body.inputs.push_back(input_of(*given));
    for (const auto& given : op.get_output_descriptions(index)) {
      HEDDLE_ASSIGN_OR_RETURN(const BodyOutput output, output_of(op, *given));
      body.outputs.push_back(output);
    }
    if (const auto* loop = dynamic_cast<const ov::op::v5::Loop*>(&op)) {
      const auto ports = loop->get_special_body_ports();
      if (ports.current_iteration_input_idx >= 0)
        body.number_parameter = static_cast<size_t>(ports.current_iteration_input_idx);
      if (ports.body_condition_output_idx >= 0)
        body.condition_result = static_cast<size_t>(ports.body_condition_output_idx);
    }
    bodies.push_back(std::move(body));
  }
  return bodies;
}

}  // namespace

Result<SegmentOps> read_segment(const SegmentModel& segment) {
  try {
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, SegmentReader().run(*segment.model));
    ops.memory = segment.model;
    return ops;
  } catch (...) {
    return openvino::current_error("reading a segment");
  }
}

}  // namespace heddle::torch_backend
