// Text to a number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace heddle {

// The whole text as a decimal number; nullopt if it is none, has other characters, or is out of the type's range.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace heddle
