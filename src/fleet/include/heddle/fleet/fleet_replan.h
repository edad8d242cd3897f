// Moves from a running plan to the plan of a changed fleet with the least migration. Migration means that devices
// load other weights (PPipe, ATC'25, section 5.1).
#pragma once

#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

// A pool of virtual devices with the same weights: these blocks of the model on shares of this size. A change
// of the batch size needs no load, so it is no move.
struct FleetMove {
  size_t model = 0;
  int block_from = 0, block_to = 0, device_class = 0, share = 1;
  int64_t before = 0, after = 0;  // virtual devices; the two differ
};

struct FleetReplan {
  FleetPlan plan;
  std::vector<FleetMove> moves;    // sorted by model, class, blocks, share
  double moved_devices = 0;        // sum of the pools' growth, in whole devices
  double moved_devices_fresh = 0;  // the same for the fresh plan
};

// A plan with the value of a fresh plan (plan_fleet() with "auto"), to 1e-6. A MILP over the columns near the
// bound's prices, the fresh and the running plan's minimises the moves up to the deadline. The running plan
// may be infeasible for this fleet, but must have its classes and models.
Result<FleetReplan> replan_fleet(const Fleet& fleet, const FleetPlan& running,
                                 const FleetPlanOptions& options);

// What moves cost beside the plan's own devices, in the objective's unit for each whole device.
struct MovePrices {
  double load = 0;    // of a device that loads other weights
  double outage = 0;  // beside it, of one that serves the running plan and so is out while it loads
};

// A plan for another load (objective cost or power) that minimises its cost and the price of the moves. So it may cost
// more than a fresh plan, but then it moves less. Devices that the running plan leaves unused load while it serves. The
// search is limited by its work, not by time: equal arguments give equal plans. Errors: those of plan_fleet().
Result<FleetReplan> replan_for_load(const Fleet& fleet, const FleetPlan& running,
                                    const FleetPlanOptions& options, const MovePrices& prices);

}  // namespace heddle
