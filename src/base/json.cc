// Parsing: a SAX handler builds the value, so that depth and duplicate keys are refused while reading, before anything
// deep exists that a recursive destructor could trip over.
#include "heddle/base/json.h"

#include <algorithm>

#include "heddle/base/file.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

struct Place {
  size_t line = 1, column = 1;
};

Place place_of(std::string_view text, size_t offset) {
  Place p;
  for (size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') {
      ++p.line;
      p.column = 1;
    } else {
      ++p.column;
    }
  }
  return p;
}

class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return add(Json()); }
  bool boolean(bool v) override { return add(Json(v)); }
  bool number_integer(number_integer_t v) override { return add(Json(v)); }
  bool number_unsigned(number_unsigned_t v) override { return add(Json(v)); }
  bool number_float(number_float_t v, const string_t&) override { return add(Json(v)); }
  bool string(string_t& v) override { return add(Json(std::move(v))); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& v) override {
    // Members keep their order, so looking for a duplicate is a scan; a set would cost more on small objects, and
    // objects with very many members do not occur in Heddle's files: refuse them.
    constexpr size_t kMostMembers = 4096;
    const auto& object = *stack_.back();
    if (object.size() >= kMostMembers) return fail("an object has over " + std::to_string(kMostMembers) + " members");
    if (object.contains(v)) return fail("the key \"" + v + "\" occurs twice in one object");
    key_ = std::move(v);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& e) override {
    offset_ = position > 0 ? position - 1 : 0;
    std::string what = e.what();
    const auto dash = what.find(" - ");
    message_ = "not JSON: " + (dash == std::string::npos ? "unexpected '" + token + "'" : what.substr(dash + 3));
    syntax_ = true;
    return false;
  }

  bool syntax() const { return syntax_; }
  size_t offset() const { return offset_; }
  const std::string& message() const { return message_; }
  Json take() { return std::move(root_); }

 private:
  bool fail(std::string message) {
    message_ = std::move(message);
    return false;
  }
  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    auto& top = *stack_.back();
    if (top.is_array()) {
      top.push_back(std::move(value));
      return &top.back();
    }
    return &(top[key_] = std::move(value));
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_) return fail("nested deeper than " + std::to_string(max_depth_) + " levels");
    stack_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  int max_depth_;
  Json root_;
  std::vector<Json*> stack_;
  std::string key_, message_;
  size_t offset_ = 0;
  bool syntax_ = false;
};

std::string type_text(const Json& v) {
  switch (v.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "the text \"" + v.get_ref<const std::string&>().substr(0, 40) + "\"";
    case Json::value_t::boolean: return v.get<bool>() ? "true" : "false";
    default: return "the number " + v.dump();
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return Error(Code::kInvalidInput, "the text has " + format_bytes(static_cast<int64_t>(text.size())) + "; at most " +
                                          format_bytes(limits.max_bytes) + " are read");
  }
  Builder builder(limits.max_depth);
  try {
    if (Json::sax_parse(text, &builder)) return builder.take();
  } catch (const std::exception& e) {
    return Error(Code::kInvalidInput, std::string("not JSON: ") + e.what());
  }
  if (!builder.syntax()) return Error(Code::kInvalidInput, builder.message());
  const auto p = place_of(text, builder.offset());
  return Error(Code::kInvalidInput, "line " + std::to_string(p.line) + ", column " + std::to_string(p.column) + ": " + builder.message());
}

Result<Json> read_json_file(const std::string& path, const JsonLimits& limits) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, limits.max_bytes));
  auto json = parse_json(text, limits);
  if (!json.ok()) return std::move(json).error().with_context(path);
  return json;
}

// ---- JsonCursor

Error JsonCursor::error(std::string message) const { return Error(Code::kInvalidInput, path_ + ": " + std::move(message)); }

namespace {
Error wrong_type(const JsonCursor& c, const char* expected) {
  return c.error(std::string("expected ") + expected + ", found " + type_text(c.value()));
}
}  // namespace

bool JsonCursor::has(std::string_view key) const { return value_->is_object() && value_->contains(key); }

Result<JsonCursor> JsonCursor::at(std::string_view key) const {
  if (!value_->is_object()) return wrong_type(*this, "an object");
  const auto it = value_->find(key);
  if (it == value_->end()) return error("\"" + std::string(key) + "\" is missing");
  return JsonCursor(*it, path_ + "." + std::string(key));
}

Result<std::vector<JsonCursor>> JsonCursor::elements(size_t max_size) const {
  if (!value_->is_array()) return wrong_type(*this, "an array");
  if (value_->size() > max_size) {
    return error("has " + std::to_string(value_->size()) + " elements; at most " + std::to_string(max_size) + " are read");
  }
  std::vector<JsonCursor> list;
  list.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) list.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]");
  return list;
}

Result<std::string> JsonCursor::as_string() const {
  if (!value_->is_string()) return wrong_type(*this, "a text");
  return value_->get<std::string>();
}

Result<bool> JsonCursor::as_bool() const {
  if (!value_->is_boolean()) return wrong_type(*this, "true or false");
  return value_->get<bool>();
}

Result<int64_t> JsonCursor::as_int(int64_t min, int64_t max) const {
  if (!value_->is_number_integer()) return wrong_type(*this, "a whole number");
  const bool too_large = value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t v = too_large ? INT64_MAX : value_->get<int64_t>();
  if (too_large || v < min || v > max) {
    return error(value_->dump() + " is out of range; expected " + std::to_string(min) + " to " + std::to_string(max));
  }
  return v;
}

Result<double> JsonCursor::as_number(double min, double max) const {
  if (!value_->is_number()) return wrong_type(*this, "a number");
  const double v = value_->get<double>();
  if (!(v >= min && v <= max)) {
    return error(value_->dump() + " is out of range; expected " + Json(min).dump() + " to " + Json(max).dump());
  }
  return v;
}

namespace {

template <class T, class Get>
Result<std::vector<T>> list_of(const JsonCursor& c, Get get) {
  if (!c.value().is_array()) return wrong_type(c, "an array");
  std::vector<T> list;
  list.reserve(c.value().size());
  size_t i = 0;
  for (const auto& element : c.value()) {
    // The path is made only when it is needed: arrays of numbers are long.
    auto value = get(JsonCursor(element, ""));
    if (!value.ok()) return get(JsonCursor(element, c.path() + "[" + std::to_string(i) + "]")).error();
    list.push_back(std::move(value).value());
    ++i;
  }
  return list;
}

}  // namespace

Result<std::vector<int64_t>> JsonCursor::as_ints(int64_t min, int64_t max) const {
  return list_of<int64_t>(*this, [&](const JsonCursor& c) { return c.as_int(min, max); });
}

Result<std::vector<double>> JsonCursor::as_numbers(double min, double max) const {
  return list_of<double>(*this, [&](const JsonCursor& c) { return c.as_number(min, max); });
}

Result<std::vector<std::string>> JsonCursor::as_strings() const {
  return list_of<std::string>(*this, [](const JsonCursor& c) { return c.as_string(); });
}

Result<std::string> JsonCursor::string_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto c, at(key));
  return c.as_string();
}

Result<int64_t> JsonCursor::int_or(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto c, at(key));
  return c.as_int(min, max);
}

Result<double> JsonCursor::number_or(std::string_view key, double fallback, double min, double max) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto c, at(key));
  return c.as_number(min, max);
}

Result<bool> JsonCursor::bool_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto c, at(key));
  return c.as_bool();
}

}  // namespace heddle
