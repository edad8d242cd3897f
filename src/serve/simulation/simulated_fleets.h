// The small fleets that are simulated.
#pragma once

#include <vector>

#include "heddle/fleet/fleet_plan.h"

namespace heddle {

struct PlannedFleet {
  Fleet fleet;
  FleetPlan plan;
};

// Planned at the first call, which must be outside of all simulations.
const std::vector<PlannedFleet>& planned_fleets();

}  // namespace heddle
