#include "step_types.h"

#include <algorithm>
#include <limits>

namespace heddle::torch_backend {
namespace {

double largest_of(DType type) {
  return type == DType::kF16 ? static_cast<double>(std::numeric_limits<at::Half>::max())
                             : static_cast<double>(std::numeric_limits<at::BFloat16>::max());
}

bool has(std::span<const std::string_view> types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

constexpr std::string_view kNarrow[] = {"AdaptiveAvgPool",
                                        "AvgPool",
                                        "BatchNormInference",
                                        "Convolution",
                                        "ConvolutionBackpropData",
                                        "Einsum",
                                        "GroupConvolution",
                                        "GroupConvolutionBackpropData",
                                        "GroupNormalization",
                                        "LogSoftmax",
                                        "MVN",
                                        "MatMul",
                                        "MaxPool",
                                        "ScaledDotProductAttention",
                                        "Softmax"};
constexpr std::string_view kWide[] = {"Col2Im",
                                      "CumSum",
                                      "DFT",
                                      "Exp",
                                      "FakeConvert",
                                      "FakeQuantize",
                                      "GRUSequence",
                                      "GridSample",
                                      "IDFT",
                                      "IRDFT",
                                      "If",
                                      "Interpolate",
                                      "LRN",
                                      "LSTMSequence",
                                      "Loop",
                                      "NormalizeL2",
                                      "Power",
                                      "RDFT",
                                      "RNNSequence",
                                      "ROIAlign",
                                      "ReduceL2",
                                      "ReduceProd",
                                      "SquaredDifference",
                                      "TensorIterator"};

}  // namespace

DType narrow_dtype(Precision precision) {
  switch (precision) {
    case Precision::kFp16:
      return DType::kF16;
    case Precision::kBf16:
      return DType::kBF16;
    case Precision::kF32:
    case Precision::kTf32:
      break;
  }
  return DType::kUndefined;
}

bool is_square(std::string_view type, int first, int second) { return type == "Multiply" && first == second; }

bool keeps_constants(std::string_view type) { return type == "BatchNormInference"; }

bool computes_narrow(std::string_view type, std::span<const FloatInput> inputs, bool need_range) {
  const auto any = [&](FloatInput kind) {
    return std::find(inputs.begin(), inputs.end(), kind) != inputs.end();
  };
  if (has(kNarrow, type)) return true;
  if (need_range || has(kWide, type)) return false;
  if (any(FloatInput::kNarrow)) return true;
  // Rows of a table are as narrow as a product's weights; numbers made from integers need not fit.
  return any(FloatInput::kConstant) && !any(FloatInput::kWide);
}

WideValues wide_values_of(const Graph& graph) {
  WideValues wide{.tensors = std::vector<bool>(graph.num_tensors(), false),
                  .params = std::vector<bool>(graph.num_params(), false)};
  for (const OpId id : graph.topological_order()) {
    const Op& op = graph.op(id);
    std::vector<FloatInput> inputs;
    for (const TensorId t : op.inputs)
      inputs.push_back(graph.tensor(t).dtype != DType::kF32 ? FloatInput::kNone
                       : wide.is_wide(t)                    ? FloatInput::kWide
                                                            : FloatInput::kNarrow);
    for (const ParamId p : op.params)
      inputs.push_back(graph.param(p).dtype == DType::kF32 ? FloatInput::kConstant : FloatInput::kNone);
    const bool squares = op.inputs.size() == 2 && is_square(op.type, op.inputs[0].value, op.inputs[1].value);
    const bool narrow = computes_narrow(op.type, inputs, squares);
    for (const TensorId t : op.outputs)
      wide.tensors[t.index()] = !narrow && graph.tensor(t).dtype == DType::kF32;
    // A parameter that narrow ops read, too, is there in both types; it counts as the wide one.
    for (const ParamId p : op.params)
      wide.params[p.index()] = wide.params[p.index()] || !narrow || keeps_constants(op.type);
  }
  return wide;
}

bool fits(const at::Tensor& constant, DType type) {
  if (constant.scalar_type() != at::kFloat || constant.numel() == 0) return true;
  const at::Tensor sizes = at::where(at::isfinite(constant), constant.abs(), at::zeros_like(constant));
  return sizes.max().item<double>() <= largest_of(type);
}

at::Tensor in_type(const at::Tensor& tensor, DType type) {
  const at::ScalarType scalar = scalar_type(type);
  if (tensor.scalar_type() != at::kFloat || scalar == at::kFloat) return tensor.to(scalar);
  return tensor.clamp(-largest_of(type), largest_of(type)).to(scalar);
}

at::Tensor as_floats(const at::Tensor& tensor, DType type, bool on_cpu) {
  const at::Tensor typed = in_type(tensor, type);
  return on_cpu ? typed.to(at::kFloat) : typed;
}

}  // namespace heddle::torch_backend
