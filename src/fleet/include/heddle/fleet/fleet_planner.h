// The single entry point to the fleet planners, which are selected by name. Before a plan is returned,
// evaluate_fleet_plan() evaluates it, a bound is added, and fleet_plan_problems() checks it.
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
  double load_per_s = 0;  // of all models, split by weight; required except for max-min
  Deadline deadline;      // at the deadline the best plan so far is returned
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

// Invalid input: a fleet that fails check_fleet(), an unknown name (the error suggests the nearest), a
// missing load. Infeasible, with the reason: a model that no pipeline serves in time, a load that no plan
// serves. A plan that the checker rejects is an internal error.
Result<FleetPlan> plan_fleet(const Fleet& fleet, const std::string& planner,
                             const FleetPlanOptions& options = {});

// The MILP that ppipe-milp solves, equation by equation, as an LP file.
Result<std::string> ppipe_milp_as_lp(const Fleet& fleet, const FleetPlanOptions& options);

}  // namespace heddle
