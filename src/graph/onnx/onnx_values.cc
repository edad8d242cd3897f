// Inputs of an ONNX file as constants: with given values, and with those that declared shapes determine.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

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
constexpr int64_t kF32 = 1, kI32 = 6, kI64 = 7, kBool = 9, kF16 = 10, kBF16 = 16;
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
  if (type == proto::kF32 || type == proto::kF16 || type == proto::kBF16) {
    const std::vector<float> floats(values.begin(), values.end());
    const DType dtype = type == proto::kF16 ? DType::kF16 : type == proto::kBF16 ? DType::kBF16 : DType::kF32;
    return onnx_float_tensor(input.name, dtype, shape, floats);
  }
  if (type != proto::kI32 && type != proto::kI64 && type != proto::kBool)
    return unsupported(what + " has a type other than f32, f16, bf16, i32, i64 and bool");
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

using Values = std::vector<double>;
using KnownShapes = std::map<std::string_view, Shape>;  // declared and static

// What a node's operand sets: the name for people, and how its value follows from shapes; null: it does not.
struct SizeOperand {
  const char* op;
  size_t operand;
  const char* role;
  std::optional<Values> (*value)(const OnnxNode& node, const KnownShapes& known);
};

const Shape* shape_in(const KnownShapes& known, std::string_view name) {
  const auto it = known.find(name);
  return it == known.end() ? nullptr : &it->second;
}
const Shape* input_shape(const OnnxNode& node, const KnownShapes& known) {
  return node.inputs.empty() ? nullptr : shape_in(known, node.inputs[0]);
}
const Shape* output_shape(const OnnxNode& node, const KnownShapes& known) {
  return node.outputs.empty() ? nullptr : shape_in(known, node.outputs[0]);
}

int64_t int_attribute(const OnnxNode& node, const char* name, int64_t by_default) {
  const OnnxAttribute* attribute = node.attribute(name);
  return attribute == nullptr ? by_default : attribute->i;
}

// The axis counted from the front; nothing if the shape does not have it.
std::optional<size_t> axis_in(int64_t axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
}

std::optional<Values> shape_of_output(const OnnxNode& node, const KnownShapes& known) {
  const Shape* out = output_shape(node, known);
  if (out == nullptr || out->empty() || std::ranges::find(*out, 0) != out->end()) return std::nullopt;
  return Values(out->begin(), out->end());
}

// Of the axes that an attribute lists, or of all.
std::optional<Values> sizes_of_axes(const OnnxNode& node, const KnownShapes& known) {
  const Shape* out = output_shape(node, known);
  const OnnxAttribute* axes = node.attribute("axes");
  const OnnxAttribute* policy = node.attribute("keep_aspect_ratio_policy");
  if (policy != nullptr && policy->s != "stretch") return std::nullopt;
  if (axes == nullptr) return shape_of_output(node, known);
  if (out == nullptr) return std::nullopt;
  Values values;
  for (const int64_t axis : axes->ints) {
    const auto at = axis_in(axis, out->size());
    if (!at) return std::nullopt;
    values.push_back(static_cast<double>((*out)[*at]));
  }
  return values;
}

std::optional<Values> size_of_axis(const OnnxNode& node, const KnownShapes& known) {
  const Shape* out = output_shape(node, known);
  const auto at = out == nullptr ? std::nullopt : axis_in(int_attribute(node, "axis", -1), out->size());
  if (!at) return std::nullopt;
  return Values{static_cast<double>((*out)[*at])};
}

std::optional<Values> sizes_of_parts(const OnnxNode& node, const KnownShapes& known) {
  Values values;
  for (const auto output : node.outputs) {
    const Shape* out = shape_in(known, output);
    const auto at = out == nullptr ? std::nullopt : axis_in(int_attribute(node, "axis", 0), out->size());
    if (!at) return std::nullopt;
    values.push_back(static_cast<double>((*out)[*at]));
  }
  return values;
}

std::optional<Values> repeats(const OnnxNode& node, const KnownShapes& known) {
  const Shape *in = input_shape(node, known), *out = output_shape(node, known);
  if (in == nullptr || out == nullptr || in->size() != out->size()) return std::nullopt;
  Values values;
  for (size_t d = 0; d < in->size(); ++d) {
    if ((*in)[d] < 1 || (*out)[d] % (*in)[d] != 0) return std::nullopt;
    const int64_t times = (*out)[d] / (*in)[d];
    values.push_back(static_cast<double>(times));
  }
  return values;
}

constexpr size_t kMostAxes = 8;

// Sets of axes of `longer` that, left out, give `shorter`; each as a number with a bit for each axis.
std::vector<uint32_t> axes_between(const Shape& longer, const Shape& shorter) {
  std::vector<uint32_t> sets;
  if (longer.size() > kMostAxes || shorter.size() > longer.size()) return sets;
  for (uint32_t set = 0; set < uint32_t{1} << longer.size(); ++set) {
    Shape left;
    for (size_t d = 0; d < longer.size(); ++d)
      if ((set >> d & 1) == 0) left.push_back(longer[d]);
    if (left == shorter) sets.push_back(set);
  }
  return sets;
}

Values axes_of(uint32_t set) {
  Values axes;
  for (int d = 0; set >> d != 0; ++d)
    if ((set >> d & 1) != 0) axes.push_back(d);
  return axes;
}

// Axes of size 1 that come or go move no value, so each set of them gives the same.
std::optional<Values> axes_of_ones(const Shape* longer, const Shape* shorter) {
  if (longer == nullptr || shorter == nullptr) return std::nullopt;
  for (const uint32_t set : axes_between(*longer, *shorter)) {
    Values axes = axes_of(set);
    if (!axes.empty() &&
        std::ranges::all_of(axes, [&](double d) { return (*longer)[static_cast<size_t>(d)] == 1; }))
      return axes;
  }
  return std::nullopt;
}
std::optional<Values> inserted_axes(const OnnxNode& node, const KnownShapes& known) {
  return axes_of_ones(output_shape(node, known), input_shape(node, known));
}
std::optional<Values> removed_axes(const OnnxNode& node, const KnownShapes& known) {
  return axes_of_ones(input_shape(node, known), output_shape(node, known));
}

std::optional<Values> reduced_axes(const OnnxNode& node, const KnownShapes& known) {
  const Shape *in = input_shape(node, known), *out = output_shape(node, known);
  if (in == nullptr || out == nullptr || in->size() > kMostAxes) return std::nullopt;
  std::vector<uint32_t> sets;
  if (int_attribute(node, "keepdims", 1) == 0) {
    sets = axes_between(*in, *out);
  } else if (in->size() == out->size()) {
    sets.push_back(0);
    for (size_t d = 0; d < in->size(); ++d)
      if ((*in)[d] != (*out)[d] && (*out)[d] == 1) sets[0] |= uint32_t{1} << d;
  }
  // No axis means all of them, or none, by another attribute.
  if (sets.size() != 1 || sets[0] == 0) return std::nullopt;
  return axes_of(sets[0]);
}

constexpr SizeOperand kSizeOperands[] = {
    {"AffineGrid", 1, "the size", nullptr},
    {"BlackmanWindow", 0, "the size", shape_of_output},
    {"CenterCropPad", 1, "the sizes", sizes_of_axes},
    {"Col2Im", 1, "the size of the image", nullptr},
    {"Col2Im", 2, "the size of a block", nullptr},
    {"ConstantOfShape", 0, "the shape", shape_of_output},
    {"Expand", 1, "the shape", shape_of_output},
    {"HammingWindow", 0, "the size", shape_of_output},
    {"HannWindow", 0, "the size", shape_of_output},
    {"Loop", 0, "the number of iterations", nullptr},
    {"Loop", 1, "the condition", nullptr},
    {"NonMaxSuppression", 2, "the most boxes of each class", nullptr},
    {"OneHot", 1, "the depth", size_of_axis},
    {"Pad", 1, "the padding", nullptr},
    {"Range", 0, "the start", nullptr},
    {"Range", 1, "the limit", nullptr},
    {"Range", 2, "the step", nullptr},
    {"Reshape", 1, "the shape", shape_of_output},
    {"Resize", 1, "the region of interest", nullptr},
    {"Resize", 2, "the scales", nullptr},
    {"Resize", 3, "the sizes", sizes_of_axes},
    {"Slice", 1, "the starts", nullptr},
    {"Slice", 2, "the ends", nullptr},
    {"Slice", 3, "the axes", nullptr},
    {"Slice", 4, "the steps", nullptr},
    {"Split", 1, "the sizes", sizes_of_parts},
    {"Squeeze", 1, "the axes", removed_axes},
    {"Tile", 1, "the repeats", repeats},
    {"TopK", 1, "the number of values", size_of_axis},
    {"Unsqueeze", 1, "the axes", inserted_axes},
    {"Upsample", 1, "the scales", nullptr},
};
constexpr SizeOperand kReducedAxes = {"Reduce", 1, "the axes", reduced_axes};

const SizeOperand* size_operand(const OnnxNode& node, size_t operand) {
  if (!is_standard_domain(node.domain)) return nullptr;
  if (node.op_type.starts_with("Reduce")) return operand == 1 ? &kReducedAxes : nullptr;
  const auto found = std::ranges::find_if(
      kSizeOperands, [&](const SizeOperand& s) { return node.op_type == s.op && operand == s.operand; });
  return found == std::end(kSizeOperands) ? nullptr : found;
}

KnownShapes known_shapes(const OnnxGraph& graph) {
  KnownShapes known;
  for (const auto* values : {&graph.inputs, &graph.outputs, &graph.values})
    for (const auto& v : *values)
      if (v.has_shape && std::ranges::all_of(v.dims, [](int64_t d) { return d >= 0; }))
        known[v.name] = v.dims;
  for (const auto& t : graph.initializers) known[t.name] = t.dims;
  return known;
}

}  // namespace

InputValues determined_values(const OnnxModel& model) {
  const OnnxGraph& graph = model.graph;
  const KnownShapes known = known_shapes(graph);
  std::map<std::string_view, std::optional<Values>> found;  // no value: none, or several
  std::set<std::string_view> candidates;
  for (const auto& input : graph.inputs)
    if (input.dims.size() <= 1 && input.kind == OnnxValue::Kind::kTensor) candidates.insert(input.name);
  for (const auto& t : graph.initializers) candidates.erase(t.name);
  for (const auto& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!candidates.contains(node.inputs[i])) continue;
      const SizeOperand* operand = size_operand(node, i);
      auto value =
          operand == nullptr || operand->value == nullptr ? std::nullopt : operand->value(node, known);
      const auto [at, first] = found.try_emplace(node.inputs[i], value);
      if (!first && at->second != value) at->second.reset();
    }
  InputValues values;
  for (const auto& [name, value] : found)
    if (value && !value->empty()) values[std::string(name)] = *value;
  return values;
}

std::string role_of_input(const OnnxModel& model, std::string_view input) {
  std::string first;
  for (const auto& node : model.graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != input) continue;
      if (const SizeOperand* operand = size_operand(node, i))
        return std::string(operand->role) + " of " + node_text(node);
      if (first.empty()) first = "read by " + node_text(node);
    }
  return first;
}

bool is_other_resize(const OnnxNode& node, bool rounds) {
  if (node.op_type != "Resize") return false;
  const auto is = [&](const char* name, auto differs) {
    const OnnxAttribute* attribute = node.attribute(name);
    return attribute != nullptr && differs(*attribute);
  };
  const auto set = [](const OnnxAttribute& a) { return a.i != 0; };
  return is("antialias", set) || is("exclude_outside", set) ||
         is("keep_aspect_ratio_policy", [](const OnnxAttribute& a) { return a.s != "stretch"; }) ||
         (rounds && is("coordinate_transformation_mode",
                       [](const OnnxAttribute& a) { return a.s == "align_corners"; }));
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
