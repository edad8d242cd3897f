#include "heddle/serve/trace_context.h"

namespace heddle {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kTraceparentBytes = 55;  // 00-(32 digits)-(16 digits)-(2 digits)

// nullopt: another character than 0-9 and a-f.
std::optional<uint64_t> hex_value(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    const auto digit = kHexDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value << 4 | digit;
  }
  return value;
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kTraceparentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return std::nullopt;
  const auto version = hex_value(text.substr(0, 2)), high = hex_value(text.substr(3, 16)),
             low = hex_value(text.substr(19, 16)), span = hex_value(text.substr(36, 16)),
             flags = hex_value(text.substr(53, 2));
  if (!version || !high || !low || !span || !flags || *version == 0xff) return std::nullopt;
  if (text.size() > kTraceparentBytes && (*version == 0 || text[kTraceparentBytes] != '-'))
    return std::nullopt;
  if ((*high == 0 && *low == 0) || *span == 0) return std::nullopt;
  return TraceContext{*high, *low, *span, (*flags & 1) != 0};
}

std::string hex_text(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = kHexDigits[value & 15];
  return text;
}

}  // namespace heddle
