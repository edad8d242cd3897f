#include "onnx_wire.h"

namespace heddle::internal {

Error wire_error(int64_t offset, std::string what) {
  return invalid_input("byte " + std::to_string(offset) + ": " + std::move(what));
}

Error WireReader::error(std::string what) const { return wire_error(offset(), std::move(what)); }

Result<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < 10; ++i) {
    if (i >= rest_.size()) return error("the file ends inside a number (is it truncated?)");
    const auto byte = static_cast<unsigned char>(rest_[i]);
    if (i == 9 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  return error("a number is longer than 64 bits; this is not valid protobuf");
}

Result<uint64_t> WireReader::fixed(size_t size) {
  if (rest_.size() < size) return error("the file ends inside a number (is it truncated?)");
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  rest_.remove_prefix(size);
  return value;
}

Result<WireField> WireReader::next() {
  WireField field;
  field.offset = offset();
  const char* const begin = rest_.data();
  HEDDLE_ASSIGN_OR_RETURN(const uint64_t tag, varint());
  const uint64_t type = tag & 7;
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
    return wire_error(field.offset, "a field has an impossible number; this is not ONNX");
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireField::Type>(type);
  if (type == WireField::kVarint) {
    HEDDLE_ASSIGN_OR_RETURN(field.value, varint());
  } else if (type == WireField::kFixed64 || type == WireField::kFixed32) {
    HEDDLE_ASSIGN_OR_RETURN(field.value, fixed(type == WireField::kFixed64 ? 8 : 4));
  } else if (type == WireField::kBytes) {
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t size, varint());
    if (size > rest_.size()) {
      return wire_error(field.offset, "a field says that it has " + std::to_string(size) + " bytes, but " +
                                          std::to_string(rest_.size()) +
                                          " are left (is the file truncated?)");
    }
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
  } else {
    return wire_error(field.offset, "a field has wire type " + std::to_string(type) + "; this is not ONNX");
  }
  field.whole = {begin, static_cast<size_t>(rest_.data() - begin)};
  return field;
}

Result<std::string_view> text_in(std::string_view message, uint32_t number) {
  std::string_view text;
  HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
    if (f.number == number) text = f.bytes;
    return {};
  }));
  return text;
}

}  // namespace heddle::internal
