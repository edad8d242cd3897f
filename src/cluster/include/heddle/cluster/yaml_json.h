// YAML documents as JSON values, so that formats are read and checked in one way for both syntaxes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/base/status.h"

namespace heddle {

struct YamlDocument {
  Json json;
  std::map<std::string, int> lines;  // line of each value, by its path as JsonCursor writes it
};

// What plain (unquoted) scalars become: numbers, true, false or null if spelled as in JSON, or always the text as
// it stands, so that the names 007 and 1.10 stay what they are. Nothing, "null" and "~" are null in both.
enum class PlainScalars { kTyped, kText };

// Quoted scalars are strings. Rejected: repeated keys, keys that are not words or over 500 bytes, values that
// contain themselves, more than 2,000,000 values. Errors carry file and line. `kind` is the expected content, for
// messages.
Result<YamlDocument> parse_yaml_as_json(std::string_view text, const std::string& source,
                                        const std::string& kind, PlainScalars plain = PlainScalars::kTyped);

// Replaces the JSON path in a JsonCursor's error by "source:line".
Error with_yaml_place(Error error, const YamlDocument& document, const std::string& source);

// Block style, with lists of numbers on one line; reads back to the same value.
std::string json_to_yaml(const Json& json);

}  // namespace heddle
