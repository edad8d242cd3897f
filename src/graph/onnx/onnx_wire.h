// Reads protobuf's wire format in place: no copies, no recursion, every length is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle::internal {

// One field of a message; its wire type tells which member is set.
struct WireField {
  enum Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Type type = kVarint;
  uint64_t value = 0;      // kVarint, kFixed64, kFixed32
  std::string_view bytes;  // kBytes
  int64_t offset = 0;      // of the field's tag, from the start of the file
  std::string_view whole;  // the field with its tag
};

// Iterates over the fields of one message. `base` is the start of the whole file, for offsets in messages.
class WireReader {
 public:
  WireReader(std::string_view message, const char* base) : rest_(message), base_(base) {}

  bool done() const { return rest_.empty(); }
  // The next field; fails on truncation, an over-long number, field 0 and group wire types.
  Result<WireField> next();
  // A number of a packed list (kBytes field).
  Result<uint64_t> varint();
  int64_t offset() const { return rest_.data() - base_; }
  // An error with the offset of `at` (or of the next byte).
  Error error(std::string what) const;

 private:
  Result<uint64_t> fixed(size_t size);
  std::string_view rest_;
  const char* base_;
};

Error wire_error(int64_t offset, std::string what);

// Calls `handle(field)` for each field of a message that was parsed before: offsets in errors count from its start.
template <class Handler>
Status each_field(std::string_view message, Handler handle) {
  WireReader reader(message, message.data());
  while (!reader.done()) {
    HEDDLE_ASSIGN_OR_RETURN(const WireField field, reader.next());
    HEDDLE_RETURN_IF_ERROR(handle(field));
  }
  return {};
}

// The text in the field of that number, its last one; empty without one.
Result<std::string_view> text_in(std::string_view message, uint32_t number);

}  // namespace heddle::internal
