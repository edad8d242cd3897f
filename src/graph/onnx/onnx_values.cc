// with_values(): inputs of an ONNX file become constants.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/spelling.h"
#include "onnx_file.h"
#include "onnx_wire.h"
#include "onnx_writer.h"

namespace heddle::internal {
namespace {

// Field numbers and types of onnx.proto.
namespace proto {
constexpr uint32_t kModelGraph = 7, kInputs = 11, kNameOfValue = 1;
constexpr int kInitializers = 5, kInt32Data = 5;
constexpr int64_t kF32 = 1, kI32 = 6, kI64 = 7, kBool = 9, kF16 = 10;
}  // namespace proto

// The input's shape with its open dimension set; an input of unknown rank is a vector.
Result<Shape> shape_for(const OnnxValue& input, size_t count) {
  Shape shape = input.has_shape ? Shape(input.dims.begin(), input.dims.end()) : Shape{-1};
  const auto wanted = static_cast<int64_t>(count);
  int64_t known = 1;
  for (const int64_t d : shape)
    if (d >= 0 && __builtin_mul_overflow(known, d, &known)) known = std::numeric_limits<int64_t>::max();
  const auto open = std::ranges::count_if(shape, [](int64_t d) { return d < 0; });
  if (open == 1 && known > 0 && wanted % known == 0)
    *std::ranges::find_if(shape, [](int64_t d) { return d < 0; }) = wanted / known;
  else if (open > 0 || known != wanted)
    return invalid_input("--value gives input " + quote_text(input.name) + " " + counted(count, "value") +
                         ", which do not fill its shape " +
                         (shape.empty() ? "(a scalar)" : shape_text(shape)));
  return shape;
}

Result<WireMessage> tensor_of(const OnnxValue& input, const std::vector<double>& values) {
  const std::string what = "--value: input " + quote_text(input.name);
  if (input.kind != OnnxValue::Kind::kTensor) return unsupported(what + " is not a tensor");
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, shape_for(input, values.size()));
  const int64_t type = input.elem_type;
  if (type == proto::kF32 || type == proto::kF16) {
    const std::vector<float> floats(values.begin(), values.end());
    return onnx_float_tensor(input.name, type == proto::kF16 ? DType::kF16 : DType::kF32, shape, floats);
  }
  if (type != proto::kI32 && type != proto::kI64 && type != proto::kBool)
    return unsupported(what + " has a type other than f32, f16, i32, i64 and bool");
  // Doubles hold whole numbers exactly up to 2^53.
  const double most = type == proto::kBool ? 1 : type == proto::kI32 ? INT32_MAX : 9007199254740992.0;
  std::vector<int64_t> whole;
  for (const double v : values) {
    if (v != std::floor(v) || v > most || v < (type == proto::kBool ? 0 : -most))
      return invalid_input(what + " has whole numbers of at most " +
                           std::to_string(static_cast<int64_t>(most)) + ", but a value is " +
                           std::to_string(v));
    whole.push_back(static_cast<int64_t>(v));
  }
  if (type == proto::kI64) return onnx_int_tensor(input.name, shape, whole);
  WireMessage tensor =
      onnx_tensor_header(input.name, type == proto::kI32 ? DType::kI32 : DType::kBool, shape);
  for (const int64_t v : whole) tensor.number(proto::kInt32Data, v);
  return tensor;
}

// The message without the fields for which `change` returns true; it may write others instead.
template <class Change>
Result<WireMessage> copy_changed(std::string_view message, Change change) {
  WireMessage copied;
  HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& field) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const bool changed, change(field, copied));
    if (!changed) copied.bytes() += field.whole;
    return {};
  }));
  return copied;
}

}  // namespace

bool is_other_resize(const OnnxNode& node) {
  if (node.op_type != "Resize") return false;
  const auto is = [&](const char* name, auto differs) {
    const OnnxAttribute* attribute = node.attribute(name);
    return attribute != nullptr && differs(*attribute);
  };
  const auto set = [](const OnnxAttribute& a) { return a.i != 0; };
  return is("antialias", set) || is("exclude_outside", set) ||
         is("keep_aspect_ratio_policy", [](const OnnxAttribute& a) { return a.s != "stretch"; }) ||
         is("coordinate_transformation_mode", [](const OnnxAttribute& a) { return a.s == "align_corners"; });
}

Result<std::string> with_values(std::string_view file, const OnnxModel& model, const InputValues& values) {
  std::vector<WireMessage> tensors;
  for (const auto& [name, given] : values) {
    const auto& inputs = model.graph.inputs;
    const auto input = std::ranges::find(inputs, name, &OnnxValue::name);
    if (input == inputs.end()) {
      std::vector<std::string> names;
      for (const auto& i : inputs) names.emplace_back(i.name);
      return invalid_input("--value names input " + quote_text(name) + ", which the model does not have" +
                           did_you_mean(name, names));
    }
    if (std::ranges::count(model.graph.initializers, input->name, &OnnxTensor::name) > 0)
      return invalid_input("--value names input " + quote_text(name) + ", which has a value in the file");
    HEDDLE_ASSIGN_OR_RETURN(auto tensor, tensor_of(*input, given));
    tensors.push_back(std::move(tensor));
  }
  const auto leave_inputs_out = [&](const WireField& field, WireMessage&) -> Result<bool> {
    if (field.number != proto::kInputs) return false;
    HEDDLE_ASSIGN_OR_RETURN(const auto name, text_in(field.bytes, proto::kNameOfValue));
    return values.contains(std::string(name));
  };
  const auto change_graph = [&](const WireField& field, WireMessage& copied) -> Result<bool> {
    if (field.number != proto::kModelGraph) return false;
    HEDDLE_ASSIGN_OR_RETURN(WireMessage graph, copy_changed(field.bytes, leave_inputs_out));
    for (const auto& tensor : tensors) graph.message(proto::kInitializers, tensor);
    copied.message(proto::kModelGraph, graph);
    return true;
  };
  HEDDLE_ASSIGN_OR_RETURN(WireMessage written, copy_changed(file, change_graph));
  return std::move(written.bytes());
}

}  // namespace heddle::internal
