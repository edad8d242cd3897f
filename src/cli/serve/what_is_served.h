// What `heddle serve` was given.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json.h"

namespace heddle::cli {

enum class What { kModels, kPlan, kFleet };

// By the file's own word; a file of neither format is left to the reader of fleets, which says what is wrong.
inline What what_is_served(const std::vector<std::string>& paths) {
  if (paths.size() != 1) return What::kModels;
  const auto& path = paths.front();
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return What::kFleet;
  if (!path.ends_with(".json")) return What::kModels;
  const auto json = read_json_file(path);
  const bool plan = json.ok() && json->is_object() && json->value("format", Json()) == "heddle-plan";
  return plan ? What::kPlan : What::kFleet;
}

}  // namespace heddle::cli
