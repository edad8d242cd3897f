#include "heddle/base/fields.h"

#include <cmath>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

constexpr double kMostQuantity = 1e30;  // finite, with room to multiply

std::optional<double> parse_whole_bytes(std::string_view text) {
  const auto bytes = parse_bytes(text);
  return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
}

}  // namespace

const Unit kBytesUnit{parse_whole_bytes, "a size such as '16GiB', '512MB' or a number of bytes"};
const Unit kBytesPerSecondUnit{parse_bandwidth,
                               "a bandwidth such as '12GB/s', '100Gbit/s' or bytes per second"};
const Unit kMicrosecondsUnit{parse_time_us, "a time such as '5us', '1.5ms' or microseconds"};
const Unit kFlopsUnit{parse_flops, "a rate such as '15.7TFLOPS' or FLOP per second"};

Status take(const JsonCursor& at, std::string& out) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_string());
  return {};
}

Status take(const JsonCursor& at, bool& out) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_bool());
  return {};
}

Status take(const JsonCursor& at, uint64_t& out) {
  if (!at.value().is_number_unsigned())
    return at.error("is " + at.describe() + ", expected a whole number of at least 0");
  out = at.value().get<uint64_t>();
  return {};
}

Status take(const JsonCursor& at, double& out, double min, double max) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_number(min, max));
  return {};
}

Status take(const JsonCursor& at, double& out, const Unit& unit) {
  const Json& value = at.value();
  std::optional<double> quantity;
  if (value.is_number()) quantity = value.get<double>();
  if (value.is_string()) quantity = unit.parse(value.get_ref<const std::string&>());
  if (!quantity) return at.error("is " + at.describe() + ", expected " + unit.expected);
  if (!(*quantity >= 0 && *quantity <= kMostQuantity))
    return at.error("is " + at.describe() + ", expected 0 to 1e30 in base units");
  out = *quantity;
  return {};
}

Status take(const JsonCursor& at, int64_t& out, const Unit& unit) {
  // A double has no room for all digits of a large number.
  if (const auto whole = at.as_int(0); whole.ok()) {
    out = *whole;
    return {};
  }
  double quantity = 0;
  HEDDLE_RETURN_IF_ERROR(take(at, quantity, unit));
  if (quantity >= 0x1p63 || quantity != std::floor(quantity))
    return at.error("is " + at.describe() + ", expected " + unit.expected);
  out = static_cast<int64_t>(quantity);
  return {};
}

Status take(const JsonCursor& at, std::vector<std::string>& out) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_strings());
  return {};
}

Status take(const JsonCursor& at, std::vector<double>& out, double min, double max) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_numbers(min, max));
  return {};
}

Fields::Fields(const JsonCursor& at) : at_(at) {
  known_.reserve(16);
  keep(at_.check_object());
}

Fields::Fields(const JsonCursor& at, std::string_view format, int64_t version) : Fields(at) {
  if (ok() && !has("format"))
    keep(at.error("the key 'format' is missing, expected '" + std::string(format) + "'"));
  required("format", [&](const JsonCursor& member) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, member.as_string());
    if (text == format) return {};
    return member.error("is " + quote_text(text) + ", expected '" + std::string(format) + "'");
  });
  required("version", [&](const JsonCursor& member) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t number, member.as_int(1));
    if (number <= version) return {};
    return member.error("is " + std::to_string(number) + ", but this Heddle reads up to version " +
                        std::to_string(version) + "; use a newer Heddle, or write the file again");
  });
  other_format_ = !ok();
}

Fields& Fields::ignored(std::initializer_list<std::string_view> keys) {
  known_.insert(known_.end(), keys);
  return *this;
}

std::optional<JsonCursor> Fields::find(std::string_view key, bool required) {
  known_.push_back(key);
  if (!error_.ok()) return std::nullopt;
  const auto& value = at_.value();
  const auto found = value.find(key);
  if (found != value.end()) return at_.member(key, *found);
  if (required) keep(at_.error("the key " + quote_text(key) + " is missing"));
  return std::nullopt;
}

Status Fields::finish() {
  if (!other_format_ && !others_ignored_ && at_.value().is_object())
    HEDDLE_RETURN_IF_ERROR(at_.check_keys(known_));
  return std::move(error_);
}

bool has_format(const Json& json, std::string_view format) {
  const auto found = json.is_object() ? json.find("format") : json.end();
  return found != json.end() && *found == format;
}

bool first_has(const Json& json, const char* list, const char* key) {
  const auto found = json.is_object() ? json.find(list) : json.end();
  return found != json.end() && found->is_array() && !found->empty() && found->front().is_object() &&
         found->front().contains(key);
}

}  // namespace heddle
