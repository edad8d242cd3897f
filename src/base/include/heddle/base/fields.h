// Reads JSON objects member by member into variables:
//
//   Fields f(cursor);
//   f.required("name", device.name).optional("speed", device.speed, 0, 1e30);
//   return f.finish();
//
// After the name come the variable and how it is read: a range, a Unit, a table of names, or a function.
#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/json.h"

namespace heddle {

// A quantity is a number in the base unit, or text with a unit ("16GiB").
struct Unit {
  std::optional<double> (*parse)(std::string_view text);
  const char* expected;  // for messages
};
extern const Unit kBytesUnit, kBytesPerSecondUnit, kMicrosecondsUnit, kFlopsUnit;

// Each overload reads the value at a cursor into `out`.
Status take(const JsonCursor& at, std::string& out);
Status take(const JsonCursor& at, bool& out);
Status take(const JsonCursor& at, uint64_t& out);
Status take(const JsonCursor& at, double& out, double min, double max);
Status take(const JsonCursor& at, double& out, const Unit& unit);
Status take(const JsonCursor& at, int64_t& out, const Unit& unit);
Status take(const JsonCursor& at, std::vector<std::string>& out);
Status take(const JsonCursor& at, std::vector<double>& out, double min, double max);

template <std::integral T>
Status take(const JsonCursor& at, T& out, int64_t min = std::numeric_limits<T>::min(),
            int64_t max = std::numeric_limits<T>::max()) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t value, at.as_int(min, max));
  out = static_cast<T>(value);
  return {};
}

template <std::integral T>
Status take(const JsonCursor& at, std::vector<T>& out, int64_t min, int64_t max) {
  HEDDLE_ASSIGN_OR_RETURN(const auto values, at.as_ints(min, max));
  out.assign(values.begin(), values.end());
  return {};
}

// Numbers below `count` as ids.
template <class Tag>
Status take(const JsonCursor& at, Id<Tag>& out, size_t count) {
  return take(at, out.value, 0, static_cast<int64_t>(count) - 1);
}
template <class Tag>
Status take(const JsonCursor& at, std::vector<Id<Tag>>& out, size_t count) {
  HEDDLE_ASSIGN_OR_RETURN(const auto values, at.as_ints(0, static_cast<int64_t>(count) - 1));
  for (const int64_t value : values) out.emplace_back(static_cast<int32_t>(value));
  return {};
}

template <class T, class... Range>
requires std::integral<T> || std::floating_point<T> Status take(const JsonCursor& at, std::optional<T>& out,
                                                                Range... range) {
  return take(at, out.emplace(), range...);
}

// Text that stands for a value; `expected` is for the message about other text.
template <class T>
Status take(const JsonCursor& at, T& out, std::optional<T> (*parse)(std::string_view), const char* expected) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, at.as_string());
  const std::optional<T> value = parse(text);
  if (!value) return at.error("is " + at.describe() + ", expected " + expected);
  out = *value;
  return {};
}

// `read` makes the whole value from the cursor and `arguments`.
template <class T, class Read, class... Arguments>
requires std::invocable<Read, const JsonCursor&, Arguments...> Status take(const JsonCursor& at, T& out,
                                                                           Read&& read,
                                                                           Arguments&&... arguments) {
  HEDDLE_ASSIGN_OR_RETURN(out, std::invoke(read, at, arguments...));
  return {};
}

// `read` puts the value where it belongs.
template <class Read>
requires std::is_invocable_r_v<Status, Read, const JsonCursor&> Status take(const JsonCursor& at,
                                                                            Read&& read) {
  return read(at);
}

// A reader of arrays, which calls `read` for each element.
template <class Read>
auto each(Read read, size_t max_size = kMostElements) {
  return [read = std::move(read), max_size](const JsonCursor& at) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const size_t size, at.array_size(max_size));
    for (size_t i = 0; i < size; ++i) HEDDLE_RETURN_IF_ERROR(read(at.element(i)));
    return {};
  };
}

// A reader of arrays, which puts what `read` makes of each element into `list`.
template <class T, class Read>
auto each_into(std::vector<T>& list, Read read, size_t max_size = kMostElements) {
  return each(
      [&list, read = std::move(read)](const JsonCursor& at) -> Status {
        HEDDLE_ASSIGN_OR_RETURN(auto value, read(at));
        list.push_back(std::move(value));
        return {};
      },
      max_size);
}

// A reader of objects of any names, which calls `read` with each member and its name; `expected` is for the
// message about other values.
template <class Read>
auto each_member(const char* expected, Read read) {
  return [expected, read = std::move(read)](const JsonCursor& at) -> Status {
    if (!at.value().is_object()) return at.error("is " + at.describe() + ", expected " + expected);
    for (const auto& [name, value] : at.value().template get_ref<const Json::object_t&>())
      HEDDLE_RETURN_IF_ERROR(read(name, at.member(name, value)));
    return {};
  };
}

// The first error is kept, and later calls only note the names that are known. Not copied while in use.
class Fields {
 public:
  explicit Fields(const JsonCursor& at);
  // Of a file: the member "format" must be this one, "version" from 1 to `version`.
  Fields(const JsonCursor& at, std::string_view format, int64_t version);

  // A missing member is an error.
  template <class... How>
  Fields& required(std::string_view key, How&&... how) {
    if (const auto member = find(key, true)) keep(take(*member, std::forward<How>(how)...));
    return *this;
  }
  // A missing member leaves the variable as it is.
  template <class... How>
  Fields& optional(std::string_view key, How&&... how) {
    if (const auto member = find(key, false)) keep(take(*member, std::forward<How>(how)...));
    return *this;
  }
  // Calls `step` unless there was an error.
  template <class Step>
  Fields& then(Step&& step) {
    if (error_.ok()) error_ = step();
    return *this;
  }
  // Members that may be there and are not read.
  Fields& ignored(std::initializer_list<std::string_view> keys);

  // Members that no call names are fine, too: for files of others.
  Fields& others_ignored() {
    others_ignored_ = true;
    return *this;
  }

  bool has(std::string_view key) const { return at_.has(key); }
  bool ok() const { return error_.ok(); }
  // The error of a wrong format, else that of a member that no call named, else the first one.
  Status finish();

 private:
  std::optional<JsonCursor> find(std::string_view key, bool required);
  void keep(Status status) {
    if (error_.ok()) error_ = std::move(status);
  }

  JsonCursor at_;
  std::vector<std::string_view> known_;
  Status error_;
  bool other_format_ = false, others_ignored_ = false;
};

// True for a document with this member "format".
bool has_format(const Json& json, std::string_view format);

// True when the member `list` is an array that begins with an object with this key.
bool first_has(const Json& json, const char* list, const char* key);

// What `read` makes of a JSON file; errors name the file.
template <class Read>
std::invoke_result_t<Read, const Json&> read_json_file(const std::string& path, Read read) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, read_json_file(path));
  auto value = read(json);
  if (!value.ok()) return std::move(value).error().with_context(path);
  return value;
}

}  // namespace heddle
