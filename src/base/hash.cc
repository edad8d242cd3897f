#include "heddle/base/hash.h"

#include <charconv>

namespace heddle {

std::string hex64(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

std::optional<uint64_t> hex64_from_text(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  // from_chars() also takes capitals and fewer digits.
  if (code != std::errc() || hex64(value) != text) return std::nullopt;
  return value;
}

}  // namespace heddle
