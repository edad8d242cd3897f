// A result for machines and for people.
#pragma once

#include <string>

#include "heddle/base/json.h"

namespace heddle {

struct Shown {
  Json json;
  std::string text;  // ends with a line break
};

}  // namespace heddle
