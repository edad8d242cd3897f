#include "heddle/runtime/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "corner.h"

namespace heddle {
namespace {

constexpr size_t kTensorAlignment = 64;

float half_to_float(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  const float sign = (h & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

template <class T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

std::shared_ptr<std::byte[]> allocate_aligned(int64_t bytes) {
  const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + kTensorAlignment - 1) /
                      kTensorAlignment * kTensorAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kTensorAlignment, size));
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, size);
  return {memory, [](std::byte* p) { std::free(p); }};
}

Result<TensorValue> make_tensor(DType dtype, const Shape& shape) {
  if (dtype == DType::kString || dtype_bits(dtype) == 0) {
    return unsupported(std::string("a tensor of ") + dtype_name(dtype) +
                       " cannot be held in memory here; only numbers and bools can");
  }
  const auto bytes = tensor_bytes(dtype, shape);
  if (!bytes) return invalid_input("the size of a tensor of shape " + shape_text(shape) + " overflows");
  TensorValue value{dtype, shape, allocate_aligned(*bytes), *bytes};
  if (!value.data) {
    return invalid_input("no memory for a tensor of " + std::to_string(*bytes) + " bytes, shape " +
                         shape_text(shape));
  }
  return value;
}

Shape shape_values(const TensorView& tensor) {
  Shape values(static_cast<size_t>(tensor.bytes) / sizeof(int64_t));
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(int64_t));
  return values;
}

Result<TensorValue> front_corner(const TensorView& tensor, const Shape& shape) {
  if (!fits_into(shape, tensor.shape))
    return internal_error("the true shape " + shape_text(shape) + " does not fit in " +
                          shape_text(tensor.shape));
  HEDDLE_ASSIGN_OR_RETURN(TensorValue part, make_tensor(tensor.dtype, shape));
  visit_corner(shape, tensor.shape, *tensor_bytes(tensor.dtype, {1}),
               [&](int64_t to, int64_t from, size_t run) {
                 std::memcpy(part.data.get() + to, tensor.data + from, run);
               });
  return part;
}

double element_as_double(const TensorView& tensor, int64_t index) {
  const std::byte* data = tensor.data;
  switch (tensor.dtype) {
    case DType::kBool:
    case DType::kU8:
      return load<uint8_t>(data, index);
    case DType::kI8:
      return load<int8_t>(data, index);
    case DType::kI16:
      return load<int16_t>(data, index);
    case DType::kU16:
      return load<uint16_t>(data, index);
    case DType::kI32:
      return load<int32_t>(data, index);
    case DType::kU32:
      return load<uint32_t>(data, index);
    case DType::kI64:
      return static_cast<double>(load<int64_t>(data, index));
    case DType::kU64:
      return static_cast<double>(load<uint64_t>(data, index));
    case DType::kF16:
      return half_to_float(load<uint16_t>(data, index));
    case DType::kBF16: {
      const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(data, index)) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case DType::kF32:
      return load<float>(data, index);
    case DType::kF64:
      return load<double>(data, index);
    default:
      return load<uint8_t>(data, index);  // compare packed and 8-bit float formats byte by byte
  }
}

int64_t numbers_in(const TensorView& tensor) {
  const int bits = dtype_bits(tensor.dtype);
  return bits >= 8 ? tensor.bytes / (bits / 8) : tensor.bytes;
}

TensorDifference compare_tensors(const TensorView& actual, const TensorView& expected, double rtol,
                                 double atol) {
  TensorDifference difference;
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) {
    return {.equal = false, .max_abs = INFINITY, .max_rel = INFINITY};
  }
  if (std::memcmp(actual.data, expected.data, static_cast<size_t>(expected.bytes)) == 0) return difference;
  const int64_t count = numbers_in(expected);
  for (int64_t i = 0; i < count; ++i) {
    const double a = element_as_double(actual, i);
    const double b = element_as_double(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double abs = std::fabs(a - b);
    if (std::isnan(abs)) abs = INFINITY;
    difference.max_abs = std::max(difference.max_abs, abs);
    difference.max_rel = std::max(difference.max_rel, abs / std::max({std::fabs(b), atol, 1e-300}));
    if (!std::isfinite(abs) || !(abs <= atol + rtol * std::fabs(b))) difference.equal = false;
  }
  return difference;
}

}  // namespace heddle
