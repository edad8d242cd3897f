#include "heddle/base/spelling.h"

#include <algorithm>

namespace heddle {
namespace {

// Mistyped names are short; limits the quadratic table for hostile input.
constexpr size_t kMaxWord = 100;

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1 each.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

bool is_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string nearest_spelling(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kMaxWord) return "";
  for (const auto& candidate : candidates)
    if (is_but_for_case(word, candidate)) return candidate;
  // Less than the word's own length, so that a suggestion shares at least one letter with it; one edit of short words.
  const size_t limit =
      word.size() <= 3 ? std::min<size_t>(1, word.size() - 1) : std::max<size_t>(2, word.size() / 3);
  size_t best = limit + 1;
  std::string_view nearest;
  for (const auto& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), word.size());
    if (longer - std::min(candidate.size(), word.size()) >= best) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return std::string(nearest);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string nearest = nearest_spelling(word, candidates);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string join_names(std::span<const std::string> names, size_t limit) {
  const size_t shown = std::min(names.size(), limit);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += "'" + names[i] + "'";
  }
  if (shown == names.size()) return text;
  const std::string rest = std::to_string(names.size() - shown) + " more";
  return shown == 0 ? rest : text + " and " + rest;
}

std::string counted(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<std::string> split_list(std::string_view text) {
  auto parts = split_at(text, ',');
  std::erase(parts, "");
  return parts;
}

std::string quote_text(std::string_view text, size_t limit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  size_t shown = std::min(text.size(), limit);
  // Do not cut a UTF-8 character in two: step back over its continuation bytes.
  while (shown > 0 && shown < text.size() && !begins_character(text[shown])) --shown;
  std::string quoted = "'";
  for (const char c : text.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return quoted + (shown < text.size() ? "...'" : "'");
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut_text(std::string_view text, size_t width, std::string_view mark) {
  if (characters(text) <= width) return std::string(text);
  const size_t keep = width - std::min(width, mark.size());
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end)
    if (begins_character(text[end]) && seen++ == keep) break;
  return std::string(text.substr(0, end)) + std::string(mark.substr(0, width));
}

bool is_printable(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t more = c < 0x80                ? 0
                        : c >= 0xC2 && c < 0xE0 ? 1
                        : c >= 0xE0 && c < 0xF0 ? 2
                        : c >= 0xF0 && c < 0xF5 ? 3
                                                : 9;
    if (more == 9 || c < 0x20 || c == 0x7F || i + more >= text.size()) return false;
    uint32_t code = more == 0 ? c : c & (0x3Fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    const bool c1_control = code >= 0x80 && code < 0xA0;
    if (overlong || c1_control || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace heddle
