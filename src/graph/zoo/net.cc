#include "net.h"

#include <set>
#include <string_view>

namespace heddle::zoo {
namespace {

struct NodeType {
  const char* openvino;
  // Floating-point operations per element of the output, by the same convention as model_flops.cc, so that
  // built and imported networks cost the same: 1 for arithmetic, 4 for transcendental functions, more for
  // compositions.
  double flops = 0;
};
// By the type in ONNX.
const std::map<std::string_view, NodeType> kNodeTypes = {
    {"Add", {"Add", 1}},
    {"Sub", {"Subtract", 1}},
    {"Mul", {"Multiply", 1}},
    {"Div", {"Divide", 1}},
    {"Pow", {"Power", 4}},
    {"Relu", {"Relu", 1}},
    {"Sigmoid", {"Sigmoid", 5}},
    {"Tanh", {"Tanh", 4}},
    {"Erf", {"Erf", 4}},
    {"Sqrt", {"Sqrt", 1}},
    {"Neg", {"Negative", 1}},
    {"Cos", {"Cos", 4}},
    {"Sin", {"Sin", 4}},
    {"Softmax", {"Softmax", 8}},
    {"BatchNormalization", {"BatchNormInference", 2}},
    {"Conv", {"Convolution"}},
    {"MatMul", {"MatMul"}},
    {"Einsum", {"Einsum"}},
    {"MaxPool", {"MaxPool"}},
    {"AveragePool", {"AvgPool"}},
    {"ReduceMean", {"ReduceMean"}},
    {"Cast", {"Convert"}},
    {"Concat", {"Concat"}},
    {"Split", {"VariadicSplit"}},
    {"Slice", {"Slice"}},
    {"Reshape", {"Reshape"}},
    {"Transpose", {"Transpose"}},
    {"Gather", {"Gather"}},
    {"Pad", {"Pad"}},
};

constexpr size_t kMaxNodes = 500'000;
// Larger than any machine's memory; below it, sums over kMaxNodes nodes cannot overflow.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 38;

}  // namespace

void Net::fail(const std::string& name, const std::string& message) {
  if (status_.ok()) status_ = invalid_input("'" + name + "': " + message);
}

Val Net::push(Value value) {
  const auto bytes = tensor_bytes(value.dtype, value.shape);
  if (!bytes || *bytes > kMaxTensorBytes) {
    fail(value.name, "the tensor " + shape_text(value.shape) + " is too large; give smaller parameters");
    value.shape.assign(value.shape.size(), 1);
  }
  values_.push_back(std::move(value));
  return static_cast<Val>(values_.size()) - 1;
}

int64_t Net::elements(const Shape& shape) const {
  int64_t count = 1;
  for (const int64_t d : shape)
    if (__builtin_mul_overflow(count, d, &count)) return 0;
  return count;
}

Val Net::input(const std::string& name, DType dtype, Shape shape) {
  inputs_.push_back(push({.name = name, .dtype = dtype, .shape = std::move(shape)}));
  return inputs_.back();
}

Val Net::weight(const std::string& name, Weight weight) {
  if (weight.trained < 0) weight.trained = elements(weight.shape);
  Value value{.name = name, .dtype = float_type_, .shape = weight.shape, .kind = ValueKind::kWeight};
  value.weight = std::move(weight);
  return push(std::move(value));
}

Val Net::constant(const std::string& kind, Value value) {
  auto& known = constants_[kind];
  for (const Val v : known) {
    const Value& other = values_[static_cast<size_t>(v)];
    if (other.ints == value.ints && other.floats == value.floats) return v;
  }
  value.name = kind + "_" + std::to_string(known.size());
  value.kind = ValueKind::kConstant;
  known.push_back(push(std::move(value)));
  return known.back();
}

Val Net::ints(std::vector<int64_t> values) {
  const auto size = static_cast<int64_t>(values.size());
  return constant("ints", {.dtype = DType::kI64, .shape = {size}, .ints = std::move(values)});
}

Val Net::index(int64_t number) { return constant("index", {.dtype = DType::kI64, .ints = {number}}); }

Val Net::scalar(float number) { return constant("scalar", {.dtype = float_type_, .floats = {number}}); }

std::vector<Val> Net::add(const char* onnx_type, const std::string& name, std::vector<Val> inputs,
                          const std::vector<Shape>& shapes, std::vector<Attribute> attributes, Work work) {
  if (nodes_.size() >= kMaxNodes)
    fail(name, "the model has more than " + std::to_string(kMaxNodes) + " nodes");
  const bool keep = status_.ok();
  const NodeType& type = kNodeTypes.at(onnx_type);
  Node node{name, onnx_type, type.openvino, std::move(inputs), {}, std::move(attributes)};
  node.flops = work.flops >= 0 ? work.flops : type.flops * static_cast<double>(elements(shapes[0]));
  node.bytes = work.bytes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string output = shapes.size() == 1 ? name : name + "." + std::to_string(i);
    node.outputs.push_back(push({.name = output, .dtype = float_type_, .shape = shapes[i]}));
  }
  auto outputs = node.outputs;
  if (keep) nodes_.push_back(std::move(node));
  return outputs;
}

Val Net::add(const char* onnx_type, const std::string& name, std::vector<Val> inputs, Shape shape,
             std::vector<Attribute> attributes, Work work) {
  return add(onnx_type, name, std::move(inputs), std::vector<Shape>{std::move(shape)}, std::move(attributes),
             work)[0];
}

bool Node::is_product() const {
  static const std::set<std::string_view> products = {"Conv", "Einsum", "MatMul"};
  return products.contains(onnx_type);
}

}  // namespace heddle::zoo
