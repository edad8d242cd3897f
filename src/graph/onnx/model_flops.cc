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
// Transposed, [I, O, k...] or [G, I, O, k...]: each input element is multiplied O * prod(k) times. `first`:
// the first of those factors.
double convolution(const ov::Node& node, size_t first, bool transposed) {
  const auto& weights = node.get_input_partial_shape(1);
  if (weights.rank().is_dynamic()) return 0;
  double each = 1;
  for (size_t i = first; i < weights.size(); ++i) each *= dim(weights, i);
  return 2 * each * (transposed ? in_elements(node) : out_elements(node));
}

double matmul(const ov::Node& node) {
  const auto& a = node.get_input_partial_shape(0);
  if (a.rank().is_dynamic() || a.size() == 0) return 0;
  const auto* op = dynamic_cast<const ov::op::v0::MatMul*>(&node);
  const bool transposed = op != nullptr && op->get_transpose_a() && a.size() > 1;
  return 2 * out_elements(node) * dim(a, transposed ? a.size() - 2 : a.size() - 1);
}

// W [directions, gates * hidden, inputs], R [directions, gates * hidden, hidden] and a bias, from input
// `weights` on. X is [batch, steps, inputs] of a sequence, [batch, inputs] of a cell.
double recurrent(const ov::Node& node, size_t weights, bool sequence) {
  const auto& x = node.get_input_partial_shape(0);
  const double runs = dim(x, 0) * (sequence ? dim(x, 1) : 1);
  return runs * (2 * in_elements(node, weights) + 2 * in_elements(node, weights + 1) +
                 4 * in_elements(node, weights + 2));
}

// Q [..., L, E], K [..., S, E], V [..., S, V]: two products, and a softmax over L x S per head.
double attention(const ov::Node& node) {
  const auto &q = node.get_input_partial_shape(0), &k = node.get_input_partial_shape(1),
             &v = node.get_input_partial_shape(2);
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

using OpsPerElement = std::unordered_map<std::string_view, double>;

OpsPerElement ops_per_element(
    std::initializer_list<std::pair<double, std::initializer_list<std::string_view>>> types) {
  OpsPerElement table;
  for (const auto& [ops, names] : types)
    for (const auto name : names) table[name] = ops;
  return table;
}

// Operations per element of the output.
const OpsPerElement& per_output() {
  static const OpsPerElement table = ops_per_element({
      // Arithmetic, comparison, logic.
      {1, {"Add",        "Subtract",  "Multiply",   "Divide",     "Maximum",      "Minimum",   "Abs",
           "Negative",   "Relu",      "Floor",      "Ceiling",    "Round",        "Sign",      "Mod",
           "FloorMod",   "Equal",     "NotEqual",   "Greater",    "GreaterEqual", "Less",      "LessEqual",
           "LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot", "BitwiseAnd",   "BitwiseOr", "BitwiseXor",
           "BitwiseNot", "Select",    "IsNaN",      "IsInf",      "IsFinite",     "CumSum",    "Sqrt"}},
      // Piecewise linear functions, normalisation with known statistics, quantisation.
      {2, {"Clamp", "PRelu", "BatchNormInference", "SquaredDifference", "FakeConvert"}},
      {3, {"HardSigmoid", "HSigmoid", "SoftSign"}},
      // Transcendental functions count 4; functions composed of them count more.
      {4,
       {"HSwish", "FakeQuantize", "LRN", "Exp", "Log", "Power", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan",
        "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Erf"}},
      {5, {"Sigmoid", "Elu"}},
      {6, {"Selu", "SoftPlus", "Swish"}},
      // Softmax, per row: maximum, difference, exponential, sum, quotient. Interpolation reads 2 (linear)
      // points per axis at the most common setting.
      {8, {"Mish", "Gelu", "Softmax", "LogSoftmax", "Interpolate"}},
  });
  return table;
}

// Operations per element of the first input.
const OpsPerElement& per_input() {
  static const OpsPerElement table = ops_per_element({
      {1,
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogicalAnd",
        "ReduceLogicalOr", "TopK", "AdaptiveAvgPool", "AdaptiveMaxPool"}},
      {2, {"ReduceL1", "ReduceL2"}},
      {4, {"NormalizeL2"}},
      {5, {"RMSNorm"}},
      {6, {"MVN"}},
      {8, {"GroupNormalization"}},
  });
  return table;
}

}  // namespace

double node_flops(const ov::Node& node) {
  const std::string_view type = node.get_type_name();
  if (const auto it = per_output().find(type); it != per_output().end())
    return it->second * out_elements(node);
  if (const auto it = per_input().find(type); it != per_input().end()) return it->second * in_elements(node);
  if (type == "Convolution" || type == "BinaryConvolution" || type == "DeformableConvolution")
    return convolution(node, 1, false);
  if (type == "GroupConvolution") return convolution(node, 2, false);
  if (type == "ConvolutionBackpropData") return convolution(node, 1, true);
  if (type == "GroupConvolutionBackpropData") return convolution(node, 2, true);
  if (type == "MatMul") return matmul(node);
  if (type == "MaxPool" || type == "AvgPool") return pooling(node);
  if (type == "LSTMSequence") return recurrent(node, 4, true);
  if (type == "GRUSequence" || type == "RNNSequence") return recurrent(node, 3, true);
  if (type == "LSTMCell") return recurrent(node, 3, false);
  if (type == "GRUCell" || type == "RNNCell") return recurrent(node, 2, false);
  if (type == "ScaledDotProductAttention") return attention(node);
  if (const auto* multi = dynamic_cast<const ov::op::util::MultiSubGraphOp*>(&node)) return subgraphs(*multi);
  return 0;
}

}  // namespace heddle::internal
