#include "body_reader.h"

#include <openvino/core/model.hpp>
#include <openvino/op/loop.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

namespace heddle::torch_backend {
namespace {

using Parent = ov::op::util::MultiSubGraphOp;

BodyInput input_of(const Parent::InputDescription& given) {
  BodyInput input{.input = static_cast<int>(given.m_input_index),
                  .parameter = static_cast<int>(given.m_body_parameter_index)};
  if (const auto* merged = dynamic_cast<const Parent::MergedInputDescription*>(&given))
    input.fed_back = static_cast<int>(merged->m_body_value_index);
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
  BodyOutput output{.result = static_cast<int>(given.m_body_value_index),
                    .output = static_cast<int>(given.m_output_index)};
  if (const auto* joined = dynamic_cast<const Parent::ConcatOutputDescription*>(&given)) {
    output.joined = true;
    output.axis = joined->m_axis;
    output.stride = joined->m_stride;
  } else if (const auto* last = dynamic_cast<const Parent::BodyOutputDescription*>(&given);
             last != nullptr && last->m_iteration != -1) {
    return Error(Code::kUnsupported, "op '" + op.get_friendly_name() + "' (" + op.get_type_name() +
                                         ") cannot run on libtorch: it gives the result of iteration " +
                                         std::to_string(last->m_iteration) + "; expected the last one's");
  }
  return output;
}

}  // namespace

Result<std::vector<OpBody>> read_bodies(const Parent& op) {
  std::vector<OpBody> bodies;
  for (size_t b = 0; b < op.get_internal_subgraphs_size(); ++b) {
    const auto index = static_cast<int>(b);
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, read_model(*op.get_function(b)));
    ops.memory = op.get_function(b);
    OpBody body{.ops = std::make_shared<const SegmentOps>(std::move(ops))};
    for (const auto& given : op.get_input_descriptions(index)) body.inputs.push_back(input_of(*given));
    for (const auto& given : op.get_output_descriptions(index)) {
      HEDDLE_ASSIGN_OR_RETURN(const BodyOutput output, output_of(op, *given));
      body.outputs.push_back(output);
    }
    if (const auto* loop = dynamic_cast<const ov::op::v5::Loop*>(&op)) {
      const auto ports = loop->get_special_body_ports();
      body.number_parameter = static_cast<int>(ports.current_iteration_input_idx);
      body.condition_result = static_cast<int>(ports.body_condition_output_idx);
    }
    bodies.push_back(std::move(body));
  }
  return bodies;
}

}  // namespace heddle::torch_backend
