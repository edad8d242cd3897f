#include "narrow_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace heddle::torch_backend {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A format's numbers by their code; a sign bit negates them.
struct FloatFormat {
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  bool has_sign = true;
  int last_finite = 0;    // code of the largest number
  int nan_code = 0;       // -1: there is none
  int infinity_code = 0;  // -1: there is none

  int sign_bit() const { return has_sign ? 1 << (exponent_bits + mantissa_bits) : 0; }
  int codes() const { return 1 << ((has_sign ? 1 : 0) + exponent_bits + mantissa_bits); }

  double number(int code) const {
    const int magnitude = has_sign ? code & (sign_bit() - 1) : code;
    const double sign = (code & sign_bit()) != 0 ? -1 : 1;
    if (magnitude == infinity_code) return sign * std::numeric_limits<double>::infinity();
    if (magnitude > last_finite) return kNan;
    const int exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1 << mantissa_bits) - 1);
    // Without a mantissa there are no subnormal numbers and no zero.
    if (exponent == 0 && mantissa_bits > 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
};

// By FloatCode, from kE4M3 on.
constexpr FloatFormat kFormats[] = {
    // exponent, mantissa, bias, sign, last finite, nan, infinity
    {4, 3, 7, true, 0x7E, 0x7F, -1},     // kE4M3
    {5, 2, 15, true, 0x7B, 0x7F, 0x7C},  // kE5M2
    {8, 0, 127, false, 0xFE, 0xFF, -1},  // kE8M0
    {2, 1, 1, true, 7, -1, -1},          // kE2M1
};
FloatFormat format_of(FloatCode code) {
  return kFormats[static_cast<size_t>(code) - static_cast<size_t>(FloatCode::kE4M3)];
}

// Converts between numbers and codes.
class FloatTable {
 public:
  explicit FloatTable(FloatCode code) : format_(format_of(code)), rounds_up_(code == FloatCode::kE8M0) {
    for (int c = 0; c < format_.codes(); ++c) numbers_[static_cast<size_t>(c)] = format_.number(c);
  }

  double number(uint8_t code) const { return numbers_[code]; }

  uint8_t code(double x) const {
    if (std::isnan(x))
      return static_cast<uint8_t>(format_.nan_code >= 0 ? format_.nan_code : format_.last_finite);
    const int sign = std::signbit(x) ? format_.sign_bit() : 0;
    if (!format_.has_sign && x < 0) return static_cast<uint8_t>(format_.nan_code);
    return static_cast<uint8_t>(sign | magnitude(std::fabs(x)));
  }

 private:
  int magnitude(double x) const {
    const std::span<const double> finite(numbers_.data(), static_cast<size_t>(format_.last_finite) + 1);
    const auto above = static_cast<int>(std::lower_bound(finite.begin(), finite.end(), x) - finite.begin());
    if (above > format_.last_finite) return format_.last_finite;
    if (above == 0 || rounds_up_ || finite[static_cast<size_t>(above)] == x) return above;
    const double up = finite[static_cast<size_t>(above)] - x,
                 down = x - finite[static_cast<size_t>(above) - 1];
    if (up == down) return above % 2 == 0 ? above : above - 1;
    return up < down ? above : above - 1;
  }

  FloatFormat format_;
  bool rounds_up_;
  std::array<double, 256> numbers_{};
};

const FloatTable& table_of(FloatCode code) {
  static const std::array<FloatTable, 4> tables = {FloatTable(FloatCode::kE4M3), FloatTable(FloatCode::kE5M2),
                                                   FloatTable(FloatCode::kE8M0),
                                                   FloatTable(FloatCode::kE2M1)};
  return tables[static_cast<size_t>(code) - static_cast<size_t>(FloatCode::kE4M3)];
}

int8_t of_four_bits(int bits, bool is_signed) {
  return static_cast<int8_t>(is_signed && bits >= 8 ? bits - 16 : bits);
}

}  // namespace

bool is_narrow(DType dtype) {
  return dtype == DType::kF8 || dtype == DType::kF4 || dtype == DType::kI4 || dtype == DType::kU4;
}

at::Tensor widen(const TensorView& view, FloatCode code) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(view.data);
  const auto bits_at = [&](int64_t i) {
    return view.dtype == DType::kF8 ? bytes[i] : static_cast<uint8_t>(bytes[i / 2] >> (i % 2 * 4) & 15);
  };
  if (view.dtype == DType::kI4 || view.dtype == DType::kU4) {
    at::Tensor tensor = at::empty(view.shape, view.dtype == DType::kI4 ? at::kChar : at::kByte);
    auto* data = static_cast<int8_t*>(tensor.data_ptr());
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = of_four_bits(bits_at(i), view.dtype == DType::kI4);
    return tensor;
  }
  at::Tensor tensor = at::empty(view.shape, at::kFloat);
  auto* data = tensor.data_ptr<float>();
  const FloatTable& table = table_of(code);
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = static_cast<float>(table.number(bits_at(i)));
  return tensor;
}

void store_narrow(const at::Tensor& tensor, FloatCode code, const TensorView& view) {
  auto* bytes = reinterpret_cast<uint8_t*>(view.data);
  const auto store = [&](int64_t i, uint8_t bits) {
    if (view.dtype == DType::kF8)
      bytes[i] = bits;
    else if (i % 2 == 0)
      bytes[i / 2] = bits & 15;
    else
      bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] | bits << 4);
  };
  const bool floating = code != FloatCode::kNone;
  const at::Tensor flat = tensor.to(floating ? at::kFloat : at::kChar).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    store(i, floating ? table_of(code).code(flat.data_ptr<float>()[i])
                      : static_cast<uint8_t>(flat.data_ptr<int8_t>()[i]));
  }
}

at::Tensor settle_narrow(const at::Tensor& tensor, DType dtype, FloatCode code) {
  if (dtype == DType::kU4) return tensor.to(at::kLong).bitwise_and(15).to(at::kByte);
  if (dtype == DType::kI4) return ((tensor.to(at::kLong).bitwise_and(15).bitwise_xor(8)) - 8).to(at::kChar);
  const at::Tensor given = tensor.to(at::kDouble).contiguous();
  at::Tensor settled = at::empty(given.sizes(), at::kFloat);
  const auto* from = given.data_ptr<double>();
  auto* to = settled.data_ptr<float>();
  const FloatTable& table = table_of(code);
  for (int64_t i = 0; i < given.numel(); ++i) to[i] = static_cast<float>(table.number(table.code(from[i])));
  return settled;
}

}  // namespace heddle::torch_backend
