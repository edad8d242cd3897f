// Floating-point operations of ops. A multiply-add counts as two. Ops that only move or rename data count as
// zero; their cost is in the bytes. docs/import.md has the table.
#include <openvino/core/model.hpp>
#include <openvino/op/loop.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/tensor_iterator.hpp>
#include <openvino/op/util/avg_pool_base.hpp>
#include <openvino/op/util/max_pool_base.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/op_types.hpp>
#include <string_view>
#include <unordered_map>

#include "model_impl.h"

namespace heddle::internal {
namespace {

double elements(const ov::PartialShape& shape) {
  if (shape.is_dynamic()) return 0;  // only inside subgraph bodies
  double n = 1;
  for (const auto& d : shape) n *= static_cast<double>(d.get_length());
  return n;
}

double out_elements(const ov::Node& node) { return elements(node.get_output_partial_shape(0)); }
double in_elements(const ov::Node& node, size_t i = 0) {
  return i < node.get_input_size() ? elements(node.get_input_partial_shape(i)) : 0;
}
// Returns 1 if unknown.
double dim(const ov::PartialShape& shape, size_t i) {
  return shape.rank().is_static() && i < shape.size() && shape[i].is_static()
             ? static_cast<double>(shape[i].get_length())
             : 1;
}

// Weights [O, I, k...], grouped [G, O, I, k...]: each output element takes I * prod(k) multiply-adds.
double convolution(const ov::Node& node, size_t first) {
  const auto weights = node.get_input_partial_shape(1);
  if (weights.rank().is_dynamic()) return 0;
  double per_output = 1;
  for (size_t i = first; i < weights.size(); ++i) per_output *= dim(weights, i);
  return 2 * out_elements(node) * per_output;
}

// Weights [I, O, k...], grouped [G, I, O, k...]: each input element is multiplied O * prod(k) times.
double transposed_convolution(const ov::Node& node, size_t first) {
  const auto weights = node.get_input_partial_shape(1);
  if (weights.rank().is_dynamic()) return 0;
  double per_input = 1;
  for (size_t i = first; i < weights.size(); ++i) per_input *= dim(weights, i);
  return 2 * in_elements(node) * per_input;
}

double matmul(const ov::Node& node) {
  const auto a = node.get_input_partial_shape(0);
  if (a.rank().is_dynamic() || a.size() == 0) return 0;
  const auto* op = dynamic_cast<const ov::op::v0::MatMul*>(&node);
  const bool transposed = op != nullptr && op->get_transpose_a() && a.size() > 1;
  return 2 * out_elements(node) * dim(a, transposed ? a.size() - 2 : a.size() - 1);
}

// X [batch, steps, inputs], W [directions, gates * hidden, inputs], R [directions, gates * hidden, hidden].
double recurrent_sequence(const ov::Node& node, size_t weights) {
  const auto x = node.get_input_partial_shape(0);
  const double runs = dim(x, 0) * dim(x, 1);
  return runs * (2 * in_elements(node, weights) + 2 * in_elements(node, weights + 1) +
                 4 * in_elements(node, weights + 2));
}

double recurrent_cell(const ov::Node& node, size_t weights) {
  const double runs = dim(node.get_input_partial_shape(0), 0);
  return runs * (2 * in_elements(node, weights) + 2 * in_elements(node, weights + 1) +
                 4 * in_elements(node, weights + 2));
}

// Q [..., L, E], K [..., S, E], V [..., S, V]: two products, and a softmax over L x S per head.
double attention(const ov::Node& node) {
  const auto q = node.get_input_partial_shape(0), k = node.get_input_partial_shape(1),
             v = node.get_input_partial_shape(2);
  if (q.rank().is_dynamic() || k.rank().is_dynamic() || v.rank().is_dynamic() || q.size() < 2 ||
      k.size() < 2 || v.size() < 2)
    return 0;
  const double scores = elements(q) / std::max(1.0, dim(q, q.size() - 1)) * dim(k, k.size() - 2);
  return scores * (2 * dim(q, q.size() - 1) + 2 * dim(v, v.size() - 1) + 5);
}

// One operation per tap of the kernel and output element; 1 tap if the op has no kernel attribute.
double pooling(const ov::Node& node) {
  ov::Shape kernel;
  if (const auto* p = dynamic_cast<const ov::op::util::MaxPoolBase*>(&node))
    kernel = p->get_kernel();
  else if (const auto* q = dynamic_cast<const ov::op::util::AvgPoolBase*>(&node))
    kernel = q->get_kernel();
  double taps = 1;
  for (const auto k : kernel) taps *= static_cast<double>(k);
  return out_elements(node) * taps;
}

double model_flops(const ov::Model& body) {
  double sum = 0;
  for (const auto& node : body.get_ops()) sum += node_flops(*node);
  return sum;
}

// A loop's body times its iterations (1 if unknown), or an If's most expensive branch.
double subgraphs(const ov::op::util::MultiSubGraphOp& op) {
  double most = 0;
  for (const auto& body : op.get_functions())
    if (body) most = std::max(most, model_flops(*body));
  int64_t runs = 1;
  if (const auto* loop = dynamic_cast<const ov::op::v5::Loop*>(&op))
    runs = loop->get_num_iterations();
  else if (const auto* iterator = dynamic_cast<const ov::op::v0::TensorIterator*>(&op))
    runs = iterator->get_num_iterations();
  return most * static_cast<double>(std::max<int64_t>(runs, 1));
}

// Operations per element of the output.
const std::unordered_map<std::string_view, double>& per_output() {
  static const std::unordered_map<std::string_view, double> table = {
      // One each: arithmetic, comparison, logic.
      {"Add", 1},
      {"Subtract", 1},
      {"Multiply", 1},
      {"Divide", 1},
      {"Maximum", 1},
      {"Minimum", 1},
      {"Abs", 1},
      {"Negative", 1},
      {"Relu", 1},
      {"Floor", 1},
      {"Ceiling", 1},
      {"Round", 1},
      {"Sign", 1},
      {"Mod", 1},
      {"FloorMod", 1},
      {"Equal", 1},
      {"NotEqual", 1},
      {"Greater", 1},
      {"GreaterEqual", 1},
      {"Less", 1},
      {"LessEqual", 1},
      {"LogicalAnd", 1},
      {"LogicalOr", 1},
      {"LogicalXor", 1},
      {"LogicalNot", 1},
      {"BitwiseAnd", 1},
      {"BitwiseOr", 1},
      {"BitwiseXor", 1},
      {"BitwiseNot", 1},
      {"Select", 1},
      {"IsNaN", 1},
      {"IsInf", 1},
      {"IsFinite", 1},
      {"CumSum", 1},
      {"Sqrt", 1},
      // A few: piecewise linear functions, normalisation with known statistics, quantisation.
      {"Clamp", 2},
      {"PRelu", 2},
      {"BatchNormInference", 2},
      {"SquaredDifference", 2},
      {"HardSigmoid", 3},
      {"HSwish", 4},
      {"HSigmoid", 3},
      {"FakeQuantize", 4},
      {"FakeConvert", 2},
      // Transcendental functions count 4; functions composed of them count more.
      {"Exp", 4},
      {"Log", 4},
      {"Power", 4},
      {"Sin", 4},
      {"Cos", 4},
      {"Tan", 4},
      {"Asin", 4},
      {"Acos", 4},
      {"Atan", 4},
      {"Sinh", 4},
      {"Cosh", 4},
      {"Tanh", 4},
      {"Asinh", 4},
      {"Acosh", 4},
      {"Atanh", 4},
      {"Erf", 4},
      {"Sigmoid", 5},
      {"Elu", 5},
      {"Selu", 6},
      {"SoftPlus", 6},
      {"SoftSign", 3},
      {"Swish", 6},
      {"Mish", 8},
      {"Gelu", 8},
      // Per row: maximum, difference, exponential, sum, quotient.
      {"Softmax", 8},
      {"LogSoftmax", 8},
  };
  return table;
}

// Operations per element of the first input.
const std::unordered_map<std::string_view, double>& per_input() {
  static const std::unordered_map<std::string_view, double> table = {
      {"ReduceSum", 1},       {"ReduceMean", 1}, {"ReduceMax", 1},       {"ReduceMin", 1},
      {"ReduceProd", 1},      {"ReduceL1", 2},   {"ReduceL2", 2},        {"ReduceLogicalAnd", 1},
      {"ReduceLogicalOr", 1}, {"MVN", 6},        {"NormalizeL2", 4},     {"GroupNormalization", 8},
      {"RMSNorm", 5},         {"TopK", 1},       {"AdaptiveAvgPool", 1}, {"AdaptiveMaxPool", 1},
  };
  return table;
}

// Interpolation reads 2 (linear) points per axis at the most common setting.
double interpolate(const ov::Node& node) { return 8 * out_elements(node); }

}  // namespace

double node_flops(const ov::Node& node) {
  const std::string_view type = node.get_type_name();
  if (const auto it = per_output().find(type); it != per_output().end())
    return it->second * out_elements(node);
  if (const auto it = per_input().find(type); it != per_input().end()) return it->second * in_elements(node);
  if (type == "Convolution" || type == "BinaryConvolution" || type == "DeformableConvolution")
    return convolution(node, 1);
  if (type == "GroupConvolution") return convolution(node, 2);
  if (type == "ConvolutionBackpropData") return transposed_convolution(node, 1);
  if (type == "GroupConvolutionBackpropData") return transposed_convolution(node, 2);
  if (type == "MatMul") return matmul(node);
  if (type == "MaxPool" || type == "AvgPool") return pooling(node);
  if (type == "LSTMSequence") return recurrent_sequence(node, 4);
  if (type == "GRUSequence" || type == "RNNSequence") return recurrent_sequence(node, 3);
  if (type == "LSTMCell") return recurrent_cell(node, 3);
  if (type == "GRUCell" || type == "RNNCell") return recurrent_cell(node, 2);
  if (type == "ScaledDotProductAttention") return attention(node);
  if (type == "LRN") return 4 * out_elements(node);
  if (type == "Interpolate") return interpolate(node);
  if (const auto* multi = dynamic_cast<const ov::op::util::MultiSubGraphOp*>(&node)) return subgraphs(*multi);
  return 0;
}

}  // namespace heddle::internal
