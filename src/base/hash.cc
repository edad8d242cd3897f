#include "heddle/base/hash.h"

#include <fmt/format.h>

#include <charconv>

namespace heddle {

std::string hex64(uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<uint64_t> hex64_from_text(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  // from_chars() also takes capitals and fewer digits.
  if (code != std::errc() || hex64(value) != text) return std::nullopt;
  return value;
}

}  // namespace heddle
