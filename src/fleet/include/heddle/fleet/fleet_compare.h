// Several planners on one fleet.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

struct ComparedFleetPlan {
  std::string planner;
  Result<FleetPlan> plan;  // with the best bound of all, and checked; or why there is none
};

// `options` is asked before each planner, whose time begins then. Errors: those other than infeasible, unsupported and
// cancelled; a plan that the checker refuses.
Result<std::vector<ComparedFleetPlan>> compare_fleet_planners(
    const Fleet& fleet, const std::vector<std::string>& planners,
    const std::function<Result<FleetPlanOptions>()>& options);

}  // namespace heddle
