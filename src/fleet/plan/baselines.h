#pragma once

#include <vector>

#include "planner_parts.h"

namespace heddle {

// DART-r's plan when NP gave the models these devices.
Result<std::vector<ModelPlan>> dart_r_from(const FleetTask& task, const std::vector<ModelPlan>& np);

}  // namespace heddle
