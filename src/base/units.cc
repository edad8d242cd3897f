#include "heddle/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "heddle/base/numbers.h"

namespace heddle {
namespace {

struct Scale {
  std::string_view suffix;
  double factor;
};

// Three significant digits for 1 <= |value| < 1000, so that columns of one unit read alike.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string not_finite(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

struct Quantity {
  double value;
  std::string_view suffix;
};

// A non-negative finite decimal number and the text after it; surrounding blanks removed.
std::optional<Quantity> split(std::string_view text) {
  const auto trim = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  };
  text = trim(text);
  // from_chars would accept "inf" and "nan" too.
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return std::nullopt;
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return Quantity{value, trim(text.substr(static_cast<size_t>(end - text.data())))};
}

// Removes a leading multiple ("M", "Mi") from `suffix` and returns its factor; 1 when there is none.
double take_multiple(std::string_view& suffix) {
  static constexpr std::string_view kLetters = "kMGTPE";
  if (suffix.empty()) return 1;
  const char letter = suffix[0] == 'K' ? 'k' : suffix[0];
  const size_t power = kLetters.find(letter);
  if (power == std::string_view::npos) return 1;
  suffix.remove_prefix(1);
  const bool binary = !suffix.empty() && suffix[0] == 'i';
  if (binary) suffix.remove_prefix(1);
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

std::optional<double> finite(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// The number times what its suffix stands for, after a multiple ("M") where `scales` are of units that take one.
std::optional<double> scaled(std::string_view text, std::span<const Scale> scales,
                             bool takes_multiple = true) {
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  std::string_view suffix = quantity->suffix;
  const double factor = takes_multiple ? take_multiple(suffix) : 1;
  for (const Scale& scale : scales)
    if (suffix == scale.suffix) return finite(quantity->value * factor * scale.factor);
  return std::nullopt;
}

}  // namespace

std::string format_us(double us) {
  if (!std::isfinite(us)) return not_finite(us);
  // Each limit is the value that rounds up into the next unit: 999.6 us is "1.00 ms", not "1000 us".
  const double size = std::fabs(us);
  if (size == 0) return "0 us";
  if (size < 0.9995)
    return (size < 0.0009995 ? fmt::format("{:.3g}", us * 1e3) : three_digits(us * 1e3)) + " ns";
  if (size < 999.5) return three_digits(us) + " us";
  if (size < 999.5e3) return three_digits(us / 1e3) + " ms";
  if (size < 9999.5e6) return three_digits(us / 1e6) + " s";
  return fmt::format("{:.4g}", us / 3600e6) + " h";
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  if (bytes > -1024 && bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 and more would print as "1024.0".
  while (std::fabs(value) >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f}", value) + kUnits[unit];
}

std::string format_si(double value, std::string_view unit) {
  static constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  const std::string name(unit);
  if (!std::isfinite(value)) return not_finite(value) + " " + name;
  if (std::fabs(value) < 0.9995) return fmt::format("{:.3g}", value) + " " + name;
  size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string number = std::fabs(value) < 9999.5 ? three_digits(value) : fmt::format("{:.4g}", value);
  return number + " " + kPrefixes[prefix] + name;
}

std::string format_requests(double per_s) {
  if (!std::isfinite(per_s)) return not_finite(per_s) + " req/s";
  if (per_s < 999.5) return (per_s > 0 ? three_digits(per_s) : "0") + " req/s";
  std::string digits = fmt::format("{:.0f}", per_s);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + " req/s";
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  std::string_view suffix = quantity->suffix;
  const double factor = take_multiple(suffix);
  if (!suffix.empty() && suffix != "B") return std::nullopt;
  const double bytes = quantity->value * factor;
  // 2^63 is the first double that does not fit.
  if (!(bytes < 9223372036854775808.0)) return std::nullopt;
  if (factor == 1 && bytes != std::floor(bytes)) return std::nullopt;
  return static_cast<int64_t>(std::floor(bytes + (bytes < 4503599627370496.0 ? 0.5 : 0)));
}

std::optional<double> parse_bandwidth(std::string_view text) {
  static constexpr Scale kScales[] = {
      {"B/s", 1}, {"Bps", 1}, {"bit/s", 1.0 / 8}, {"b/s", 1.0 / 8}, {"bps", 1.0 / 8}};
  const auto quantity = split(text);
  if (quantity && quantity->suffix.empty()) return quantity->value;
  return scaled(text, kScales);
}

std::optional<double> parse_time_us(std::string_view text) {
  static constexpr Scale kScales[] = {{"", 1},     {"ns", 1e-3}, {"us", 1},     {"\xc2\xb5s", 1},
                                      {"ms", 1e3}, {"s", 1e6},   {"min", 60e6}, {"h", 3600e6}};
  return scaled(text, kScales, false);
}

std::optional<double> parse_seconds(std::string_view text) {
  const auto quantity = split(text);
  if (quantity && quantity->suffix.empty()) return quantity->value;
  const auto us = parse_time_us(text);
  return us ? std::optional(*us / 1e6) : std::nullopt;
}

std::optional<double> parse_rate(std::string_view text) {
  static constexpr Scale kScales[] = {{"", 1}, {"/s", 1}, {"/min", 1.0 / 60}, {"/h", 1.0 / 3600}};
  return scaled(text, kScales);
}

std::optional<int64_t> parse_count(std::string_view text) {
  if (const auto whole = parse_number<int64_t>(text)) return whole;  // exact above 2^53
  const auto quantity = split(text);
  if (!quantity) return std::nullopt;
  std::string_view suffix = quantity->suffix;
  const double value = quantity->value * take_multiple(suffix);
  if (!suffix.empty() || value != std::floor(value) || !(value < 9223372036854775808.0)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<double> parse_flops(std::string_view text) {
  static constexpr Scale kScales[] = {{"", 1},       {"FLOPS", 1}, {"FLOPs", 1},
                                      {"FLOP/s", 1}, {"flops", 1}, {"flop/s", 1}};
  return scaled(text, kScales);
}

}  // namespace heddle
