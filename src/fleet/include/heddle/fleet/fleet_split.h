// A fleet divided among several servers, each with some of its models and the devices of their pools.
#pragma once

#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

struct FleetPart {
  Fleet fleet;     // its models, and every class with the part's number of devices
  FleetPlan plan;  // of these
};

// `servers` parts (at least 1), each with at least one model; pools of different models share no device, so each keeps
// its pools. Models go, the busiest by planned requests/s first, to the part with the fewest requests/s. Devices that
// the plan leaves free are divided in proportion to requests/s. A part's plan is the plan's part, or a new one if that
// is better for its devices. Invalid input: more servers than models. O(models * servers + planning each part).
Result<std::vector<FleetPart>> split_fleet(const Fleet& fleet, const FleetPlan& plan, int servers,
                                           const FleetPlanOptions& options);

}  // namespace heddle
