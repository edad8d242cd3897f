// Contexts of errors, and settings that do not fit together.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "heddle/base/status.h"

namespace heddle {

// The same Result or Status; an error gets an outer context, e.g. the file's name.
template <class Outcome>
Outcome with_context(Outcome outcome, std::string context) {
  if (outcome.ok()) return outcome;
  return std::move(outcome).error().with_context(std::move(context));
}

// The name of the first setting that is given; null if none is. For settings that do not fit together.
inline const char* first_given(std::initializer_list<std::pair<const char*, bool>> settings) {
  for (const auto& [name, is_given] : settings) {
    if (is_given) return name;
  }
  return nullptr;
}

}  // namespace heddle
