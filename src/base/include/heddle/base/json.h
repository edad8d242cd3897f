// Strict JSON reading: depth-limited parsing with line and column in the error. A cursor checks
// types, ranges and unknown keys, and names the place ("$.ops[3].name") in every message.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"

namespace heddle {

struct JsonLimits {
  int max_depth = 64;  // deeper nesting is rejected before it can exhaust the stack
  int64_t max_bytes = int64_t{1} << 30;
};

// Parses a whole document. Errors carry line and column. Rejected: duplicate keys, trailing text, comments,
// NaN and infinities.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});
Result<Json> read_json_file(const std::string& path);

// One value as text; malformed UTF-8, which names of models may hold, is replaced. `indent` as in Json::dump().
std::string json_text(const Json& json, int indent = -1);

inline constexpr size_t kMostElements = 50'000'000;  // of an array that has no limit of its own

// A view of one value and its path; the document must outlive the cursor. All getters fail with a message
// that names the path, the value found and what was expected.
class JsonCursor {
 public:
  JsonCursor(const Json& value, std::string path = "$") : value_(&value), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  // An invalid-input error at this place.
  Error error(std::string message) const;

  // "the string 'abc'", "an array of 3": the value, for messages.
  std::string describe() const;

  Status check_object() const;
  // Fails unless the value is an object with only `allowed` keys; the message suggests the nearest spelling.
  Status check_keys(std::span<const std::string_view> allowed) const;
  Status check_keys(std::initializer_list<std::string_view> allowed) const {
    return check_keys(std::span(allowed.begin(), allowed.size()));
  }
  bool has(std::string_view key) const;
  Result<JsonCursor> at(std::string_view key) const;  // a required member
  JsonCursor member(std::string_view key,
                    const Json& value) const;  // where `value` is known to be the member
  // The size of an array of at most `max_size`, and its elements.
  Result<size_t> array_size(size_t max_size = kMostElements) const;
  JsonCursor element(size_t index) const;
  Result<std::vector<JsonCursor>> elements(size_t max_size = kMostElements) const;

  Result<std::string> as_string() const;
  Result<bool> as_bool() const;
  Result<int64_t> as_int(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;
  Result<double> as_number(double min = -1.7976931348623157e308, double max = 1.7976931348623157e308) const;
  Result<std::vector<int64_t>> as_ints(int64_t min, int64_t max) const;
  Result<std::vector<double>> as_numbers(double min, double max) const;
  Result<std::vector<std::string>> as_strings() const;

  // Optional members with a default (a wrong type is still an error).
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  Result<int64_t> int_or(std::string_view key, int64_t fallback, int64_t min = INT64_MIN,
                         int64_t max = INT64_MAX) const;
  Result<double> number_or(std::string_view key, double fallback, double min, double max) const;
  Result<bool> bool_or(std::string_view key, bool fallback) const;

 private:
  const Json* value_;
  std::string path_;
};

}  // namespace heddle
