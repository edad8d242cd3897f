#include "heddle/runtime/padding.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "corner.h"

namespace heddle {
namespace {

template <class T>
Status fill_with(const TensorValue& tensor, double value) {
  using Limits = std::numeric_limits<T>;
  constexpr bool kReal = std::is_floating_point_v<T>;
  if (!kReal && (value != std::trunc(value) || value < static_cast<double>(Limits::lowest()) ||
                 value >= std::ldexp(1.0, Limits::digits)))
    return invalid_input(std::string("an input of ") + dtype_name(tensor.dtype) + " cannot be padded with " +
                         std::to_string(value));
  const T element = static_cast<T>(value);
  for (int64_t i = 0; i < tensor.bytes; i += static_cast<int64_t>(sizeof(T)))
    std::memcpy(tensor.data.get() + i, &element, sizeof(T));
  return {};
}

Status fill_all(const TensorValue& tensor, double value) {
  switch (tensor.dtype) {
    case DType::kF32:
      return fill_with<float>(tensor, value);
    case DType::kF64:
      return fill_with<double>(tensor, value);
    case DType::kBool:
    case DType::kU8:
      return fill_with<uint8_t>(tensor, value);
    case DType::kI8:
      return fill_with<int8_t>(tensor, value);
    case DType::kI16:
      return fill_with<int16_t>(tensor, value);
    case DType::kU16:
      return fill_with<uint16_t>(tensor, value);
    case DType::kI32:
      return fill_with<int32_t>(tensor, value);
    case DType::kU32:
      return fill_with<uint32_t>(tensor, value);
    case DType::kI64:
      return fill_with<int64_t>(tensor, value);
    case DType::kU64:
      return fill_with<uint64_t>(tensor, value);
    default:
      return unsupported(std::string("inputs of ") + dtype_name(tensor.dtype) + " can be padded with 0 only");
  }
}

}  // namespace

Result<TensorValue> padded(const TensorView& tensor, const Shape& shape, double value) {
  if (!fits_into(tensor.shape, shape))
    return internal_error("a tensor of shape " + shape_text(tensor.shape) + " does not fit in " +
                          shape_text(shape));
  HEDDLE_ASSIGN_OR_RETURN(TensorValue whole, make_tensor(tensor.dtype, shape));
  if (value != 0) HEDDLE_RETURN_IF_ERROR(fill_all(whole, value));
  visit_corner(tensor.shape, shape, *tensor_bytes(tensor.dtype, {1}),
               [&](int64_t from, int64_t to, size_t run) {
                 std::memcpy(whole.data.get() + to, tensor.data + from, run);
               });
  return whole;
}

}  // namespace heddle
