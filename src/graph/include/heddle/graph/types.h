// Element types and shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

enum class DType : uint8_t {
  kUndefined,
  kBool,
  kU1,
  kI4,
  kU4,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF4,
  kF8,
  kF16,
  kBF16,
  kF32,
  kF64,
  kString,
};

const char* dtype_name(DType t);  // "f32"
std::optional<DType> dtype_from_name(std::string_view name);
int dtype_bits(DType t);  // 0 for kUndefined, 64 for kString (a pointer)

using Shape = std::vector<int64_t>;  // all dimensions >= 0; {} is a scalar

// Elements times element size, rounded up to a byte; nullopt on overflow of int64 or a negative dimension.
std::optional<int64_t> tensor_bytes(DType t, const Shape& shape);
std::string shape_text(const Shape& shape);  // "1x3x224x224", "scalar"

}  // namespace heddle
