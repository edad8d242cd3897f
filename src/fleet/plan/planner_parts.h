// What the fleet planners give to the door (fleet_planner.cc), which evaluates, bounds and checks their
// plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "columns.h"
#include "heddle/fleet/fleet_planner.h"
#include "prices.h"

namespace heddle {

struct FleetTask {
  const Fleet& fleet;
  FleetGoal goal;
  std::vector<std::vector<Column>> columns;
  DeviceNeeds needs;
  PriceBound bound;
  const FleetPlanOptions& options;
  // Served by pools that are no part of the task, on devices that are none of the fleet's; empty: nothing.
  std::vector<double> served = {};
  double served_of(size_t model) const { return served.empty() ? 0 : served[model]; }
};

// Pools for every model; rates and value are filled by the door.
struct FleetAnswer {
  std::vector<ModelPlan> models;
  // What the planner itself proved: a bound, or that its plan is optimal.
  std::optional<double> bound;
  bool optimal = false;
  std::string bound_reason;
};

Result<FleetAnswer> plan_dp(const FleetTask& task);
Result<FleetAnswer> plan_columns(const FleetTask& task);
Result<FleetAnswer> plan_milp(const FleetTask& task);
Result<FleetAnswer> plan_np(const FleetTask& task);
Result<FleetAnswer> plan_dart_r(const FleetTask& task);
// Whether plan_dp() takes it: at most two classes with devices, and tables of moderate size.
bool dp_fits(const Fleet& fleet);
// plan_dp() or plan_columns(), whichever suits.
Result<FleetAnswer> plan_by_columns(const FleetTask& task);

Error no_plan_serves(const FleetTask& task);

}  // namespace heddle
