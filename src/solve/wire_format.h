// The part of the protocol-buffer wire format that CP-SAT's messages need. A field is a key (number * 8 +
// type) and a value. Type 0: varint, 1: eight bytes, 2: a length and that many bytes, 5: four bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace heddle::wire {

class Writer {
 public:
  Writer& varint_field(uint32_t number, int64_t value) {
    varint(uint64_t{number} << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Writer& double_field(uint32_t number, double value) {
    varint(uint64_t{number} << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
    return *this;
  }
  Writer& bytes_field(uint32_t number, std::string_view value) {
    varint(uint64_t{number} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Writer& message_field(uint32_t number, const Writer& message) {
    return bytes_field(number, message.bytes_);
  }
  // A repeated integer field in packed form.
  Writer& packed_field(uint32_t number, std::initializer_list<int64_t> values) {
    return packed_field(number, std::span<const int64_t>(values.begin(), values.size()));
  }
  Writer& packed_field(uint32_t number, std::span<const int64_t> values) {
    Writer packed;
    for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
    return message_field(number, packed);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

struct Field {
  uint32_t number = 0;
  uint64_t integer = 0;    // of types 0, 1 and 5
  std::string_view bytes;  // of type 2
  double as_double() const { return std::bit_cast<double>(integer); }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  // nullopt at the end, and on malformed bytes; then malformed() is true.
  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const auto key = varint();
    if (!key) return fail();
    Field field{.number = static_cast<uint32_t>(*key >> 3), .integer = 0, .bytes = {}};
    const auto type = *key & 7;
    if (type == 1 || type == 5) {
      const size_t size = type == 1 ? 8 : 4;
      if (rest_.size() < size) return fail();
      for (size_t i = 0; i < size; ++i)
        field.integer |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
      rest_.remove_prefix(size);
      return field;
    }
    const auto value = varint();
    if (!value || (type != 0 && type != 2)) return fail();
    if (type == 0) {
      field.integer = *value;
      return field;
    }
    if (*value > rest_.size()) return fail();
    field.bytes = rest_.substr(0, *value);
    rest_.remove_prefix(*value);
    return field;
  }
  bool malformed() const { return malformed_; }
  // The next varint of a packed field; nullopt as for next().
  std::optional<int64_t> next_packed() {
    if (rest_.empty()) return std::nullopt;
    const auto value = varint();
    if (!value) return fail();
    return static_cast<int64_t>(*value);
  }

 private:
  std::nullopt_t fail() {
    malformed_ = true;
    rest_ = {};
    return std::nullopt;
  }
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    return std::nullopt;
  }
  std::string_view rest_;
  bool malformed_ = false;
};

}  // namespace heddle::wire
