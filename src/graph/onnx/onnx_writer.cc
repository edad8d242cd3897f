#include "onnx_writer.h"

#include <bit>
#include <cmath>
#include <map>

namespace heddle::internal {
namespace {

constexpr int kVarint = 0, kLength = 2, kFixed32 = 5;
enum AttributeType : int64_t { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kInts = 7 };

template <class Word>
void append_word(std::string& out, Word value) {
  for (size_t i = 0; i < sizeof(Word); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// Of a number: rounds ties to even.
uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t half_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;  // rounds to infinity
  // Below 2^-14 the grid is 2^-24; above it 2^(exponent - 10). nearbyint rounds ties to even.
  if (size < 0x1p-14F) return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24F));
  const int exponent = std::ilogb(size);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 1024..2048
  return sign | static_cast<uint16_t>(((exponent + 15) << 10) + (steps - 1024));
}

WireMessage attribute_of(std::string_view name, AttributeType type) {
  WireMessage m;
  m.text(1, name);
  m.number(20, type);
  return m;
}

}  // namespace

int64_t onnx_type_of(DType type) {
  static const std::map<DType, int64_t> known = {
      {DType::kF32, 1},  {DType::kU8, 2},   {DType::kI8, 3},     {DType::kU16, 4},  {DType::kI16, 5},
      {DType::kI32, 6},  {DType::kI64, 7},  {DType::kString, 8}, {DType::kBool, 9}, {DType::kF16, 10},
      {DType::kF64, 11}, {DType::kU32, 12}, {DType::kU64, 13},   {DType::kBF16, 16}};
  const auto it = known.find(type);
  return it == known.end() ? 0 : it->second;
}

void WireMessage::varint(uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
  bytes_.push_back(static_cast<char>(value));
}

void WireMessage::number(int field, int64_t value) {
  varint(static_cast<uint64_t>(field) << 3 | kVarint);
  varint(static_cast<uint64_t>(value));
}

void WireMessage::real(int field, float value) {
  varint(static_cast<uint64_t>(field) << 3 | kFixed32);
  append_word(bytes_, std::bit_cast<uint32_t>(value));
}

void WireMessage::text_header(int field, uint64_t size) {
  varint(static_cast<uint64_t>(field) << 3 | kLength);
  varint(size);
}

void WireMessage::text(int field, std::string_view bytes) {
  text_header(field, bytes.size());
  bytes_ += bytes;
}

uint64_t wire_text_size(uint64_t size) {
  uint64_t header = 2;
  for (uint64_t rest = size; rest >= 128; rest >>= 7) ++header;
  return header + size;
}

WireMessage onnx_value_info(std::string_view name, int64_t onnx_type, const Shape* shape) {
  WireMessage tensor, any, info;
  tensor.number(1, onnx_type);
  if (shape != nullptr) {
    WireMessage dims;
    for (const int64_t d : *shape) {
      WireMessage dim;
      if (d >= 0) dim.number(1, d);
      dims.message(1, dim);
    }
    tensor.message(2, dims);
  }
  any.message(1, tensor);
  info.text(1, name);
  info.message(2, any);
  return info;
}

WireMessage onnx_value_info(std::string_view name, DType type, const Shape& shape) {
  return onnx_value_info(name, onnx_type_of(type), &shape);
}

WireMessage onnx_tensor_header(std::string_view name, DType type, const Shape& shape) {
  WireMessage m;
  for (const int64_t d : shape) m.number(1, d);
  m.number(2, onnx_type_of(type));
  if (!name.empty()) m.text(8, name);
  return m;
}

WireMessage onnx_int_tensor(std::string_view name, const Shape& shape, std::span<const int64_t> values) {
  WireMessage m = onnx_tensor_header(name, DType::kI64, shape);
  std::string data;
  for (const int64_t v : values) append_word(data, static_cast<uint64_t>(v));
  m.text(kOnnxRawData, data);
  return m;
}

WireMessage onnx_float_tensor(std::string_view name, DType type, const Shape& shape,
                              std::span<const float> values) {
  WireMessage m = onnx_tensor_header(name, type, shape);
  std::string data;
  for (const float v : values) append_float(data, type, v);
  m.text(kOnnxRawData, data);
  return m;
}

WireMessage onnx_attribute(std::string_view name, int64_t value) {
  WireMessage m = attribute_of(name, kInt);
  m.number(3, value);
  return m;
}

WireMessage onnx_attribute(std::string_view name, float value) {
  WireMessage m = attribute_of(name, kFloat);
  m.real(2, value);
  return m;
}

WireMessage onnx_attribute(std::string_view name, std::string_view value) {
  WireMessage m = attribute_of(name, kString);
  m.text(4, value);
  return m;
}

WireMessage onnx_attribute(std::string_view name, std::span<const int64_t> values) {
  WireMessage m = attribute_of(name, kInts);
  for (const int64_t v : values) m.number(8, v);
  return m;
}

WireMessage onnx_attribute(std::string_view name, const WireMessage& tensor) {
  WireMessage m = attribute_of(name, kTensor);
  m.message(5, tensor);
  return m;
}

void append_float(std::string& out, DType type, float value) {
  if (type == DType::kF16)
    append_word(out, half_of(value));
  else if (type == DType::kBF16)
    append_word(out, bfloat_of(value));
  else
    append_word(out, std::bit_cast<uint32_t>(value));
}

}  // namespace heddle::internal
