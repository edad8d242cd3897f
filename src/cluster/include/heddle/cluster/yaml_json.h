// YAML documents as JSON values, for formats that are read and checked in one way whatever the file's syntax.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/base/status.h"

namespace heddle {

struct YamlDocument {
  Json json;
  std::map<std::string, int> lines;  // of each value, by its path as JsonCursor writes it
};

// Plain scalars become numbers, true, false or null where they are spelled as in JSON, and strings otherwise;
// quoted ones are strings. Not accepted: repeated keys, keys that are no words, aliases, numbers that are not
// finite. Errors carry file and line. `kind` is what the file should hold, for messages.
Result<YamlDocument> parse_yaml_as_json(std::string_view text, const std::string& source,
                                        const std::string& kind);

// The error with "source:line" in place of the JSON path of an error that a JsonCursor made.
Error with_yaml_place(Error error, const YamlDocument& document, const std::string& source);

// Block style, lists of numbers in one line; reads back to the same value.
std::string json_to_yaml(const Json& json);

}  // namespace heddle
