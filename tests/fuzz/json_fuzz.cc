// Any bytes: parsing and the cursor neither crash nor accept what they should refuse.
#include <cstdint>

#include "heddle/base/json.h"
#include "require.h"

namespace {

using heddle::JsonCursor;

// Asks every question of every value: each gives a value or an error with a message.
void ask(const JsonCursor& cursor, int depth) {
  require(depth <= 64);
  const auto text = cursor.as_string();
  const auto flag = cursor.as_bool();
  const auto whole = cursor.as_int(-5, 5);
  const auto number = cursor.as_number(0, 1);
  require(text.ok() || !text.error().to_string().empty());
  require(flag.ok() || !flag.error().to_string().empty());
  require(!whole.ok() || (*whole >= -5 && *whole <= 5));
  require(!number.ok() || (*number >= 0 && *number <= 1));
  require(!cursor.as_ints(0, 9).ok() || cursor.value().is_array());
  require(!cursor.as_numbers(0, 9).ok() || cursor.value().is_array());
  require(!cursor.as_strings().ok() || cursor.value().is_array());
  const auto keys = cursor.check_keys({"name", "ops", "tensors", "version"});
  require(keys.ok() || !keys.error().to_string().empty());
  if (const auto elements = cursor.elements(); elements.ok()) {
    for (const JsonCursor& element : *elements) ask(element, depth + 1);
  }
  if (!cursor.value().is_object()) return;
  for (const auto& item : cursor.value().items()) {
    const auto member = cursor.at(item.key());
    require(member.ok() && member->value() == item.value());
    ask(*member, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = heddle::parse_json(text);
  if (!document.ok()) {
    require(!document.error().to_string().empty());
    return 0;
  }
  ask(JsonCursor(*document), 0);
  // What was accepted can be written and read again, to the same value.
  const auto again = heddle::parse_json(document->dump());
  require(again.ok() && *again == *document);
  return 0;
}
