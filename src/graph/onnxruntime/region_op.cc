#include "region_op.h"

#include <cstring>
#include <map>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/not_equal.hpp>
#include <stdexcept>

#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/region_faults.h"

namespace heddle::internal {
namespace {

using onnxruntime::Api;
using onnxruntime::TensorInfo;

ov::element::Type plugin_type(const ov::element::Type& type) {
  if (type == ov::element::boolean || type == ov::element::u8) return ov::element::u8;
  if (type == ov::element::i8) return type;
  return type.is_real() ? ov::element::f32 : ov::element::i32;
}

// Truth values are bytes of 0 and 1.
ov::element::Type stored_type(const ov::element::Type& type) {
  return type == ov::element::boolean ? ov::element::u8 : type;
}

// Copies, or converts and saturates as OpenVINO does.
void convert(const ov::Tensor& from, ov::Tensor& to) {
  if (stored_type(from.get_element_type()) == stored_type(to.get_element_type())) {
    std::memcpy(to.data(), from.data(), from.get_byte_size());
    return;
  }
  ov::TensorVector outputs = {to};
  ov::op::v0::Convert convert;
  convert.set_destination_type(to.get_element_type());
  // OpenVINO's own macros would put the path of this file into the program.
  if (!convert.evaluate(outputs, {from}))
    throw std::runtime_error("cannot convert " + from.get_element_type().to_string() + " to " +
                             to.get_element_type().to_string());
}

}  // namespace

ov::element::Type region_type(int onnx_type) {
  static const std::map<int, ov::element::Type> known = {
      {1, ov::element::f32},   {2, ov::element::u8},   {3, ov::element::i8},   {4, ov::element::u16},
      {5, ov::element::i16},   {6, ov::element::i32},  {7, ov::element::i64},  {9, ov::element::boolean},
      {10, ov::element::f16},  {11, ov::element::f64}, {12, ov::element::u32}, {13, ov::element::u64},
      {16, ov::element::bf16}, {18, ov::element::u8},  {20, ov::element::u8}};
  const auto it = known.find(onnx_type);
  return it == known.end() ? ov::element::dynamic : it->second;
}

OnnxRegion::OnnxRegion(const ov::OutputVector& inputs, std::shared_ptr<const RegionProgram> program)
    : Op(inputs), program_(std::move(program)) {
  constructor_validate_and_infer_types();
}

bool OnnxRegion::has_final_type(size_t output) const {
  const auto type = region_type(program_->outputs[output].type);
  return plugin_type(type) == type;
}

void OnnxRegion::validate_and_infer_types() {
  set_output_size(program_->outputs.size());
  for (size_t i = 0; i < program_->outputs.size(); ++i)
    set_output_type(i, plugin_type(region_type(program_->outputs[i].type)), program_->outputs[i].shape);
}

std::shared_ptr<ov::Node> OnnxRegion::clone_with_new_inputs(const ov::OutputVector& inputs) const {
  return std::make_shared<OnnxRegion>(inputs, program_);
}

bool OnnxRegion::visit_attributes(ov::AttributeVisitor& visitor) {
  int64_t hash = program_->hash;
  visitor.on_attribute("program", hash);
  return true;
}

Result<const onnxruntime::Session*> OnnxRegion::session() const {
  std::call_once(made_, [this] {
    const auto api = onnxruntime::library();
    if (!api.ok()) {
      session_ = Result<onnxruntime::SessionPtr>(api.error());
      return;
    }
    session_ = onnxruntime::open_session(
        **api,
        [&](onnxruntime::SessionOptions* options) {
          // Its own threads would be as many as the model has regions.
          return onnxruntime::use_cores(**api, options, {0});
        },
        [&](onnxruntime::SessionOptions* options, onnxruntime::Session** session) {
          return (*api)->create_session_from_bytes((*api)->env, program_->bytes.data(),
                                                   program_->bytes.size(), options, session);
        });
  });
  if (!session_->ok()) return session_->error();
  return session_->value().get();
}

Status OnnxRegion::run(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  HEDDLE_ASSIGN_OR_RETURN(const Api* api, onnxruntime::library());
  HEDDLE_ASSIGN_OR_RETURN(const auto* session, session());
  onnxruntime::Values values(*api), results(*api);
  std::vector<ov::Tensor> converted;
  std::vector<const char*> input_names, output_names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RegionValue& input = program_->inputs[i];
    ov::Tensor tensor = inputs[i];
    if (stored_type(tensor.get_element_type()) != stored_type(region_type(input.type))) {
      tensor = ov::Tensor(region_type(input.type), inputs[i].get_shape());
      convert(inputs[i], tensor);
    }
    converted.push_back(tensor);
    const std::vector<int64_t> shape(tensor.get_shape().begin(), tensor.get_shape().end());
    HEDDLE_RETURN_IF_ERROR(
        values.add_typed(input.type, shape, tensor.data(), static_cast<int64_t>(tensor.get_byte_size())));
    input_names.push_back(input.name.c_str());
  }
  for (const auto& output : program_->outputs) output_names.push_back(output.name.c_str());
  results.expect(output_names.size());
  HEDDLE_RETURN_IF_ERROR(onnxruntime::checked(
      *api,
      api->run(const_cast<onnxruntime::Session*>(session), nullptr, input_names.data(), values.inputs(),
               values.size(), output_names.data(), output_names.size(), results.outputs()),
      "running"));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const RegionValue& wanted = program_->outputs[i];
    HEDDLE_ASSIGN_OR_RETURN(const TensorInfo tensor, onnxruntime::tensor_info(*api, results[i]));
    const ov::Shape shape(tensor.shape.begin(), tensor.shape.end());
    if (tensor.type != wanted.type || !wanted.shape.compatible(shape))
      return invalid_input("its output " + quote_text(wanted.name) + " has the shape " +
                           shape_text(tensor.shape) + ", but the model was imported with " +
                           wanted.shape.to_string() +
                           ", which sample inputs gave; the plan holds for inputs that give this size");
    outputs[i].set_shape(shape);
    convert(ov::Tensor(region_type(tensor.type), shape, tensor.data), outputs[i]);
  }
  return {};
}

bool OnnxRegion::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  const Status done = with_context(run(outputs, inputs), program_->what);
  if (done.ok()) return true;
  if (!RegionFaults::take(done.error())) throw std::runtime_error(done.error().to_string());
  for (auto& output : outputs) std::memset(output.data(), 0, output.get_byte_size());
  return true;
}

ov::OutputVector region_outputs(const ov::OutputVector& inputs,
                                std::shared_ptr<const RegionProgram> program) {
  const auto region = std::make_shared<OnnxRegion>(inputs, std::move(program));
  ov::OutputVector outputs = region->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (region->has_final_type(i)) continue;
    const auto type = region_type(region->program().outputs[i].type);
    if (type == ov::element::boolean) {
      // OpenVINO's plugin replaces a Convert to boolean by one of the op's first output.
      const auto zero = ov::op::v0::Constant::create(ov::element::u8, {}, {0});
      outputs[i] = std::make_shared<ov::op::v1::NotEqual>(outputs[i], zero)->output(0);
    } else {
      outputs[i] = std::make_shared<ov::op::v0::Convert>(outputs[i], type)->output(0);
    }
  }
  return outputs;
}

}  // namespace heddle::internal
