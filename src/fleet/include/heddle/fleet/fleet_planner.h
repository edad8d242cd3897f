// The one door to the planners of fleets: by name, every plan evaluated by evaluate_fleet_plan(), bounded,
// and checked by fleet_plan_problems() before it is returned.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

struct FleetPlanOptions {
  FleetObjective objective = FleetObjective::kMaxMin;
  double load_per_s = 0;  // of all models together, split by weight; needed by every objective but max-min
  Deadline deadline;      // the best so far when it stops
  int threads = 1;
  uint64_t seed = 1;
  bool prove = false;  // spend the time up to the deadline on a better bound
  ProgressSink* progress = nullptr;
};

struct FleetPlannerEntry {
  const char* name;
  const char* summary;
  const char* source;  // paper and section
};
std::span<const FleetPlannerEntry> fleet_planners();

// Refuses bad fleets (check_fleet()), unknown names (with the nearest) and loads that are missing as invalid
// input; a model that no pipeline serves in time, or a load that no plan serves, as infeasible with the
// reason. A plan that the checker refuses is an internal error.
Result<FleetPlan> plan_fleet(const Fleet& fleet, const std::string& planner,
                             const FleetPlanOptions& options = {});

// The literal MILP of ppipe-milp as an LP file.
Result<std::string> ppipe_milp_as_lp(const Fleet& fleet, const FleetPlanOptions& options);

}  // namespace heddle
