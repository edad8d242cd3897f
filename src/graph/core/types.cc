#include "heddle/graph/types.h"

#include <array>

namespace heddle {
namespace {

struct DTypeFacts {
  DType type;
  const char* name;
  int bits;
};

constexpr std::array<DTypeFacts, 20> kFacts = {{
    {DType::kUndefined, "undefined", 0},
    {DType::kBool, "bool", 8},
    {DType::kU1, "u1", 1},
    {DType::kI4, "i4", 4},
    {DType::kU4, "u4", 4},
    {DType::kI8, "i8", 8},
    {DType::kU8, "u8", 8},
    {DType::kI16, "i16", 16},
    {DType::kU16, "u16", 16},
    {DType::kI32, "i32", 32},
    {DType::kU32, "u32", 32},
    {DType::kI64, "i64", 64},
    {DType::kU64, "u64", 64},
    {DType::kF4, "f4", 4},
    {DType::kF8, "f8", 8},
    {DType::kF16, "f16", 16},
    {DType::kBF16, "bf16", 16},
    {DType::kF32, "f32", 32},
    {DType::kF64, "f64", 64},
    {DType::kString, "string", 64},
}};

const DTypeFacts& facts(DType t) {
  const auto i = static_cast<size_t>(t);
  return kFacts[i < kFacts.size() ? i : 0];
}

}  // namespace

const char* dtype_name(DType t) { return facts(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const auto& f : kFacts) {
    if (name == f.name) return f.type;
  }
  return std::nullopt;
}

int dtype_bits(DType t) { return facts(t).bits; }

std::optional<int64_t> tensor_bytes(DType t, const Shape& shape) {
  bool zero = false;
  for (const auto d : shape) {
    if (d < 0) return std::nullopt;
    zero |= d == 0;
  }
  if (zero) return 0;
  int64_t bits = dtype_bits(t);
  for (const auto d : shape) {
    if (__builtin_mul_overflow(bits, d, &bits)) return std::nullopt;
  }
  return bits / 8 + (bits % 8 != 0);
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const auto d : shape) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

}  // namespace heddle
