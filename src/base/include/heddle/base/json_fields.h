// Members of JSON from a server that may be older, newer or somebody else's: what is missing or of another type reads
// as nothing. For files use JsonCursor, which says what is wrong.
#pragma once

#include <string>

#include "heddle/base/json.h"

namespace heddle {

// Null: there is none.
inline const Json* field_in(const Json& of, const char* name) {
  if (!of.is_object()) return nullptr;
  const auto it = of.find(name);
  return it == of.end() ? nullptr : &*it;
}
inline double number_in(const Json& of, const char* name) {
  const Json* field = field_in(of, name);
  return field != nullptr && field->is_number() ? field->get<double>() : 0;
}
inline std::string text_in(const Json& of, const char* name) {
  const Json* field = field_in(of, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : "";
}
inline const Json& list_in(const Json& of, const char* name) {
  static const Json kNone = Json::array();
  const Json* field = field_in(of, name);
  return field != nullptr && field->is_array() ? *field : kNone;
}
// The first member of a list whose field `key` is that text; null: there is none.
inline const Json* member_in(const Json& list, const std::string& text, const char* key = "name") {
  for (const auto& member : list)
    if (text_in(member, key) == text) return &member;
  return nullptr;
}
inline const Json& object_in(const Json& of, const char* name) {
  static const Json kNone = Json::object();
  const Json* field = field_in(of, name);
  return field != nullptr && field->is_object() ? *field : kNone;
}

}  // namespace heddle
