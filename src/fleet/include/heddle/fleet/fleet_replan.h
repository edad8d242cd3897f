// From a running plan to the plan of a changed fleet with the least migration (PPipe, ATC'25, section 5.1:
// migrating means that devices load other weights).
#pragma once

#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

// Virtual devices with the same weights: these blocks of the model on shares of this size. A change of the
// batch size loads nothing.
struct FleetMove {
  size_t model = 0;
  int block_from = 0, block_to = 0, device_class = 0, share = 1;
  int64_t before = 0, after = 0;  // virtual devices; unequal
};

struct FleetReplan {
  FleetPlan plan;
  std::vector<FleetMove> moves;    // by model, class, blocks, share
  double moved_devices = 0;        // the sum of what pools grow by, in devices
  double moved_devices_fresh = 0;  // the same for a plan that is made anew
};

// The value is that of a fresh plan (plan_fleet() with "auto", to 1e-9); among such plans of the columns near
// the bound's prices, the fresh plan's and the running plan's, the one that moves least, by a MILP up to the
// deadline. The running plan may be infeasible for this fleet; its classes and models must be the fleet's.
Result<FleetReplan> replan_fleet(const Fleet& fleet, const FleetPlan& running,
                                 const FleetPlanOptions& options);

}  // namespace heddle
