// Writes ONNX files in protobuf's wire format. Field numbers are those of onnx.proto (IR version 8).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/graph/types.h"

namespace heddle::internal {

// TensorProto.DataType; 0 if ONNX has no such type.
int64_t onnx_type_of(DType type);

// One protobuf message under construction.
class WireMessage {
 public:
  void number(int field, int64_t value);
  void real(int field, float value);
  void text(int field, std::string_view bytes);
  void message(int field, const WireMessage& inner) { text(field, inner.bytes_); }
  // Writes tag and length of a text whose bytes the caller appends.
  void text_header(int field, uint64_t size);
  void reserve(size_t size) { bytes_.reserve(size); }
  std::string& bytes() { return bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  std::string bytes_;
};

// Bytes that a text field of this size occupies with its header, for field numbers below 16.
uint64_t wire_text_size(uint64_t size);

// ValueInfoProto. A dimension of -1 is left open; without a shape the rank is open, too.
WireMessage onnx_value_info(std::string_view name, int64_t onnx_type, const Shape* shape);
WireMessage onnx_value_info(std::string_view name, DType type, const Shape& shape);
// TensorProto without its data; the name may be empty.
WireMessage onnx_tensor_header(std::string_view name, DType type, const Shape& shape);
inline constexpr int kOnnxRawData = 9;
// Tensors with data: of type i64, or of a float type (f32 or f16).
WireMessage onnx_int_tensor(std::string_view name, const Shape& shape, std::span<const int64_t> values);
WireMessage onnx_float_tensor(std::string_view name, DType type, const Shape& shape,
                              std::span<const float> values);

WireMessage onnx_attribute(std::string_view name, int64_t value);
WireMessage onnx_attribute(std::string_view name, float value);
WireMessage onnx_attribute(std::string_view name, std::string_view value);
WireMessage onnx_attribute(std::string_view name, std::span<const int64_t> values);
WireMessage onnx_attribute(std::string_view name, const WireMessage& tensor);

// Appends the value in little-endian order as f32 or f16 (rounded to the nearest, ties to even).
void append_float(std::string& out, DType type, float value);

}  // namespace heddle::internal
