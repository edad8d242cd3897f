#include "heddle/base/json.h"

#include <algorithm>
#include <new>
#include <unordered_set>

#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

constexpr size_t kMaxDetail = 240;  // limit on the parser's own text in a message, which repeats the input

// "line 3, column 14" of a byte offset; columns count bytes from 1.
std::string place_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column + 1);
}

// Bytes beyond ASCII as \xNN: in a parser's message they may be the malformed ones.
std::string ascii_only(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      ascii += c;
    } else {
      ascii += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return ascii;
}

Error error_at(std::string_view text, size_t offset, const std::string& message) {
  return invalid_input(message).with_context(place_of(text, offset));
}

// Tracks how far the lexer has read, because the handler's callbacks for keys and brackets carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Builds the document; rejects deep nesting and duplicate keys, which the library would accept.
class Builder {
 public:
  Builder(std::string_view text, const JsonLimits& limits)
      : text_(text), limits_(limits), seen_(text.data()) {}

  const char** seen() { return &seen_; }
  size_t offset() const { return static_cast<size_t>(seen_ - text_.data()); }
  std::optional<Error>& error() { return error_; }
  Json& document() { return document_; }

  bool null() { return add(Json(nullptr)); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) { return add(Json(value)); }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }  // never in text
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!open_.back().keys.insert(name).second) {
      return fail(key_start(), "duplicate key " + quote_text(name) + ": keep one of them");
    }
    open_.back().key = std::move(name);
    return true;
  }

  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception& problem) {
    const std::string_view words = problem.what();
    // Drop the library's own prefix: an error code in brackets and its line count.
    size_t start = words.find("] ");
    start = start == std::string_view::npos ? 0 : start + 2;
    if (words.substr(start).starts_with("parse error at")) start = words.find(": ", start) + 2;
    std::string detail = ascii_only(words.substr(start, kMaxDetail));
    if (words.size() - start > kMaxDetail) detail += "...";
    // `position` is one past the offending character.
    return fail(position > 0 ? position - 1 : 0, detail);
  }

 private:
  struct Open {
    Json* value;
    std::string key;                       // for objects: the member being read
    std::unordered_set<std::string> keys;  // lookups in Json's own object are linear
  };

  bool fail(size_t offset, const std::string& message) {
    error_ = error_at(text_, offset, message);
    return false;
  }
  // Offset of the opening quote of the key whose closing quote was just read.
  size_t key_start() const {
    size_t at = offset() - 1;
    while (at > 0) {
      --at;
      if (text_[at] != '"') continue;
      size_t slashes = 0;
      while (slashes < at && text_[at - slashes - 1] == '\\') ++slashes;
      if (slashes % 2 == 0) break;
    }
    return at;
  }
  // A container grows only while all of its children are closed, so pointers to open containers stay valid.
  Json* place(Json&& value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    Open& parent = open_.back();
    if (parent.value->is_array()) {
      auto& array = parent.value->get_ref<Json::array_t&>();
      return &array.emplace_back(std::move(value));
    }
    // Append to the vector under the ordered map: keys are distinct, so its linear search is not needed.
    auto& object = parent.value->get_ref<Json::object_t&>();
    using Vector = Json::object_t::Container;
    return &static_cast<Vector&>(object).emplace_back(std::move(parent.key), std::move(value)).second;
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (open_.size() >= static_cast<size_t>(std::max(limits_.max_depth, 0))) {
      return fail(offset() - 1, "nested deeper than the " + std::to_string(limits_.max_depth) +
                                    " levels that are accepted");
    }
    Json* placed = place(std::move(value));
    open_.push_back({placed, {}, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  JsonLimits limits_;
  const char* seen_;
  Json document_;
  std::vector<Open> open_;
  std::optional<Error> error_;
};

// ".name", or "['odd name']" if the name needs quotes.
std::string member_step(std::string_view key) {
  const bool plain = !key.empty() && key.size() <= 60 && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return plain ? "." + std::string(key) : "[" + quote_text(key) + "]";
}

// "an integer from 0 to 5".
std::string range_text(const char* what, const Json& min, const Json& max) {
  return std::string(what) + " from " + min.dump() + " to " + max.dump();
}

// Reads each element of an array; `what` names the elements in messages.
template <class T, class Read>
Result<std::vector<T>> read_elements(const JsonCursor& at, const char* what, Read read) {
  if (!at.value().is_array())
    return at.error("is " + at.describe() + ", expected an array of " + std::string(what));
  std::vector<T> list;
  list.reserve(at.value().size());
  for (const Json& element : at.value()) {
    auto value = read(JsonCursor(element, ""));
    // Build the path only on failure: such arrays are long.
    if (!value.ok()) return read(at.element(list.size())).error();
    list.push_back(std::move(*value));
  }
  return list;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > static_cast<uint64_t>(std::max<int64_t>(limits.max_bytes, 0))) {
    return invalid_input("the document has " + format_bytes(static_cast<int64_t>(text.size())) +
                         ", at most " + format_bytes(limits.max_bytes) + " are accepted");
  }
  if (text.empty()) return invalid_input("the document is empty, expected a JSON value");
  Builder builder(text, limits);
  try {
    const CountingIterator first(text.data(), builder.seen());
    const CountingIterator last(text.data() + text.size(), builder.seen());
    if (!Json::sax_parse(first, last, &builder)) {
      if (builder.error()) return std::move(*builder.error());
      return error_at(text, builder.offset(), "not a JSON document");
    }
  } catch (const std::bad_alloc&) {
    return invalid_input("the document does not fit in memory");
  }
  // The lexer treats a NUL byte as the end of its input.
  if (builder.offset() != text.size()) {
    return error_at(text, builder.offset() - 1, "text after the end of the document");
  }
  return std::move(builder.document());
}

Result<Json> read_json_file(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, read_file(path, JsonLimits().max_bytes));
  auto document = parse_json(text);
  if (!document.ok()) return std::move(document).error().with_context(path);
  return document;
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Error JsonCursor::error(std::string message) const {
  return invalid_input(std::move(message)).with_context(path_);
}

std::string JsonCursor::describe() const {
  switch (value_->type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return value_->get<bool>() ? "true" : "false";
    case Json::value_t::string:
      return "the string " + quote_text(value_->get_ref<const std::string&>());
    case Json::value_t::array:
      return "an array of " + std::to_string(value_->size());
    case Json::value_t::object:
      return "an object";
    default:
      return "the number " + value_->dump();
  }
}

Status JsonCursor::check_object() const {
  if (value_->is_object()) return {};
  return error("is " + describe() + ", expected an object");
}

Status JsonCursor::check_keys(std::span<const std::string_view> allowed) const {
  HEDDLE_RETURN_IF_ERROR(check_object());
  for (const auto& [key, member] : value_->get_ref<const Json::object_t&>()) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    const std::string hint = did_you_mean(key, names);
    return this->member(key, member)
        .error("unknown key" + (hint.empty() ? ", expected one of " + join_names(names) : hint));
  }
  return {};
}

bool JsonCursor::has(std::string_view key) const { return value_->is_object() && value_->contains(key); }

Result<JsonCursor> JsonCursor::at(std::string_view key) const {
  if (!value_->is_object()) {
    return error("is " + describe() + ", expected an object with the key " + quote_text(key));
  }
  const auto found = value_->find(key);
  if (found == value_->end()) return error("the key " + quote_text(key) + " is missing");
  return member(key, *found);
}

JsonCursor JsonCursor::member(std::string_view key, const Json& value) const {
  return JsonCursor(value, path_ + member_step(key));
}

Result<size_t> JsonCursor::array_size(size_t max_size) const {
  if (!value_->is_array()) return error("is " + describe() + ", expected an array");
  if (value_->size() <= max_size) return value_->size();
  return error("has " + std::to_string(value_->size()) + " elements, at most " + std::to_string(max_size) +
               " are accepted");
}

JsonCursor JsonCursor::element(size_t index) const {
  return JsonCursor((*value_)[index], path_ + "[" + std::to_string(index) + "]");
}

Result<std::vector<JsonCursor>> JsonCursor::elements(size_t max_size) const {
  HEDDLE_ASSIGN_OR_RETURN(const size_t size, array_size(max_size));
  std::vector<JsonCursor> cursors;
  cursors.reserve(size);
  for (size_t i = 0; i < size; ++i) cursors.push_back(element(i));
  return cursors;
}

Result<std::string> JsonCursor::as_string() const {
  if (!value_->is_string()) return error("is " + describe() + ", expected a string");
  return value_->get<std::string>();
}

Result<bool> JsonCursor::as_bool() const {
  if (!value_->is_boolean()) return error("is " + describe() + ", expected true or false");
  return value_->get<bool>();
}

Result<int64_t> JsonCursor::as_int(int64_t min, int64_t max) const {
  if (!value_->is_number_integer()) return error("is " + describe() + ", expected an integer");
  const bool too_large =
      value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = too_large ? INT64_MAX : value_->get<int64_t>();
  if (too_large || number < min || number > max)
    return error("is " + value_->dump() + ", expected " + range_text("an integer", min, max));
  return number;
}

Result<double> JsonCursor::as_number(double min, double max) const {
  if (!value_->is_number()) return error("is " + describe() + ", expected a number");
  const double number = value_->get<double>();
  if (!(number >= min && number <= max))
    return error("is " + value_->dump() + ", expected " + range_text("a number", min, max));
  return number;
}

Result<std::vector<int64_t>> JsonCursor::as_ints(int64_t min, int64_t max) const {
  return read_elements<int64_t>(*this, "integers", [=](const JsonCursor& at) { return at.as_int(min, max); });
}

Result<std::vector<double>> JsonCursor::as_numbers(double min, double max) const {
  return read_elements<double>(*this, "numbers",
                               [=](const JsonCursor& at) { return at.as_number(min, max); });
}

Result<std::vector<std::string>> JsonCursor::as_strings() const {
  return read_elements<std::string>(*this, "strings", [](const JsonCursor& at) { return at.as_string(); });
}

Result<std::string> JsonCursor::string_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor member, at(key));
  return member.as_string();
}

Result<int64_t> JsonCursor::int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor member, at(key));
  return member.as_int(min, max);
}

Result<double> JsonCursor::number_or(std::string_view key, double fallback, double min, double max) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor member, at(key));
  return member.as_number(min, max);
}

Result<bool> JsonCursor::bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor member, at(key));
  return member.as_bool();
}

}  // namespace heddle
