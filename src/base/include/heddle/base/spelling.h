// Words in messages and flags: names of enum values, the nearest known name to a mistyped one, counts of things, lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The candidate with the smallest edit distance (with transpositions), or "" if that exceeds max(2, a third
// of the word's length). Ties: the first. O(candidates * |word|^2).
std::string nearest_spelling(std::string_view word, std::span<const std::string> candidates);

// The enum value whose name this is; `names` has one name for each value from 0 on.
template <class Enum>
std::optional<Enum> enum_named(std::span<const char* const> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// "'a', 'b' and 'c'", at most `limit` of them, then "and N more".
std::string join_names(std::span<const std::string> names, size_t limit = 12);

// "1 lane", "2 lanes"; "s" makes the plural.
std::string counted(uint64_t count, const std::string& noun);

// The parts between separators, empty ones among them; at least one.
std::vector<std::string> split_at(std::string_view text, char separator);
// "a,b,,c" to "a", "b" and "c".
std::vector<std::string> split_list(std::string_view text);

// Untrusted text for a message: quoted, control characters as \xNN, cut after `limit` bytes.
std::string quote_text(std::string_view text, size_t limit = 60);

// How many characters of UTF-8 there are.
size_t characters(std::string_view text);
// At most `width` characters of UTF-8; of a longer text its beginning and `mark`, or as much of `mark` as fits.
std::string cut_text(std::string_view text, size_t width, std::string_view mark = "...");

// True for UTF-8 without control characters: what names are that appear in files, scripts and terminals.
bool is_printable(std::string_view text);

}  // namespace heddle
