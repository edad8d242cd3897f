#pragma once

#include <vector>

#include "planner_parts.h"

namespace heddle {

// DART-r's plan, given the devices that NP's plan assigned to the models.
Result<std::vector<ModelPlan>> dart_r_from(const FleetTask& task, const std::vector<ModelPlan>& np);

}  // namespace heddle
