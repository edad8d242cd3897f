#include "unsigned64.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace heddle::torch_backend {
namespace {

template <size_t N>
bool among(const std::string& type, const char* const (&types)[N]) {
  return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

// Ops that compute correct unsigned bits with signed arithmetic.
bool ignores_sign(const std::string& type) {
  static constexpr const char* kTypes[] = {
      "Add",           "BitwiseAnd", "BitwiseNot", "BitwiseOr",    "BitwiseXor", "Broadcast",    "Concat",
      "Equal",         "Gather",     "Multiply",   "NotEqual",     "ReduceSum",  "Reshape",      "Reverse",
      "ScatterUpdate", "Select",     "Slice",      "Split",        "Squeeze",    "StridedSlice", "Subtract",
      "Tile",          "Transpose",  "Unsqueeze",  "VariadicSplit"};
  return among(type, kTypes);
}

// Ops that only compare their operands: adding 2^63 to all of them turns unsigned order into signed order.
bool orders(const std::string& type) {
  static constexpr const char* kTypes[] = {"Greater", "GreaterEqual", "Less",      "LessEqual", "Maximum",
                                           "Minimum", "ReduceMax",    "ReduceMin", "TopK"};
  return among(type, kTypes);
}

at::Tensor plus_half_range(const at::Tensor& x) { return x.bitwise_xor(std::numeric_limits<int64_t>::min()); }

Kernel ordered(const OpNode& op, Kernel kernel) {
  std::vector<bool> in_u64, out_u64;
  for (const ValueType& type : op.inputs) in_u64.push_back(type.dtype == DType::kU64);
  for (const ValueType& type : op.outputs) out_u64.push_back(type.dtype == DType::kU64);
  return [=, kernel = std::move(kernel)](Operands in) {
    Tensors moved(in.begin(), in.end());
    for (size_t i = 0; i < moved.size(); ++i)
      if (in_u64[i]) moved[i] = plus_half_range(moved[i]);
    Tensors out = kernel(moved);
    for (size_t i = 0; i < out.size(); ++i)
      if (out_u64[i] && out[i].defined()) out[i] = plus_half_range(out[i]);
    return out;
  };
}

// Division by zero gives quotient and remainder 0, as for other integers.
uint64_t quotient(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
uint64_t remainder(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
// Modulo 2^64; O(log b).
uint64_t power(uint64_t a, uint64_t b) {
  uint64_t result = 1;
  for (; b != 0; b >>= 1, a *= a)
    if ((b & 1) != 0) result *= a;
  return result;
}

template <uint64_t (*F)(uint64_t, uint64_t)>
Tensors element_by_element(Operands in) {
  const auto shape = at::infer_size(in[0].sizes(), in[1].sizes());
  const at::Tensor a = in[0].to(at::kLong).expand(shape).contiguous();
  const at::Tensor b = in[1].to(at::kLong).expand(shape).contiguous();
  at::Tensor result = at::empty(shape, at::kLong);
  const auto *x = a.data_ptr<int64_t>(), *y = b.data_ptr<int64_t>();
  auto* to = result.data_ptr<int64_t>();
  for (int64_t i = 0; i < result.numel(); ++i)
    to[i] = static_cast<int64_t>(F(static_cast<uint64_t>(x[i]), static_cast<uint64_t>(y[i])));
  return {result};
}

constexpr double kHalfRange = 9223372036854775808.0;  // 2^63

// Halving keeps the lowest bit of a large number, so that it is rounded only once.
Tensors to_floating(Operands in) {
  const at::Tensor half = in[0].bitwise_right_shift(1).bitwise_and(std::numeric_limits<int64_t>::max());
  const at::Tensor large = half.bitwise_or(in[0].bitwise_and(1)).to(at::kDouble) * 2;
  return {at::where(in[0] < 0, large, in[0].to(at::kDouble))};
}
Tensors from_floating(Operands in) {
  const at::Tensor x = in[0].to(at::kDouble);
  const at::Tensor large = plus_half_range((x - kHalfRange).to(at::kLong));
  return {at::where(x >= kHalfRange, large, x.to(at::kLong))};
}

Kernel converter(const OpNode& op, Kernel kernel) {
  const bool from = op.inputs[0].dtype == DType::kU64;
  const ValueType& other = from ? op.outputs[0] : op.inputs[0];
  if (!at::isFloatingType(carrier(other.dtype))) return kernel;
  return from ? Kernel(to_floating) : Kernel(from_floating);
}

}  // namespace

bool takes_unsigned64(const OpNode& op) {
  static constexpr const char* kOwn[] = {"Convert", "ConvertLike", "Divide", "FloorMod", "Mod", "Power"};
  return ignores_sign(op.type) || orders(op.type) || among(op.type, kOwn);
}

Kernel for_unsigned64(const OpNode& op, Kernel kernel) {
  const auto is_u64 = [](const ValueType& type) { return type.dtype == DType::kU64; };
  if (std::none_of(op.inputs.begin(), op.inputs.end(), is_u64) &&
      std::none_of(op.outputs.begin(), op.outputs.end(), is_u64))
    return kernel;
  if (orders(op.type)) return ordered(op, std::move(kernel));
  if (op.type == "Divide") return element_by_element<quotient>;
  if (op.type == "FloorMod" || op.type == "Mod") return element_by_element<remainder>;
  if (op.type == "Power") return element_by_element<power>;
  if (op.type == "Convert" || op.type == "ConvertLike") return converter(op, std::move(kernel));
  return kernel;
}

bool fits_signed(const at::Tensor& constant) {
  return constant.defined() && (constant.numel() == 0 || constant.min().item<int64_t>() >= 0);
}

}  // namespace heddle::torch_backend
