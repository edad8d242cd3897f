#include "step_types.h"

#include <algorithm>
#include <string_view>

namespace heddle::torch_backend {
namespace {

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

bool computes_narrow(const OpNode& node, std::span<const FloatInput> inputs) {
  const auto any = [&](FloatInput kind) {
    return std::find(inputs.begin(), inputs.end(), kind) != inputs.end();
  };
  if (has(kWide, node.type)) return false;
  if (has(kNarrow, node.type) || any(FloatInput::kNarrow)) return true;
  // Rows of a table are as narrow as a product's weights; numbers made from integers need not fit.
  return any(FloatInput::kConstant) && !any(FloatInput::kWide);
}

at::Tensor as_floats(const at::Tensor& tensor, DType type, bool on_cpu) {
  if (!on_cpu) return tensor.to(scalar_type(type));
  return type == DType::kF32 ? tensor : tensor.to(scalar_type(type)).to(at::kFloat);
}

}  // namespace heddle::torch_backend
