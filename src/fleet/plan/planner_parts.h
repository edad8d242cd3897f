// What fleet planners receive from and return to fleet_planner.cc, which evaluates, bounds and checks their
// plans.
#pragma once

#include <optional>
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
  // [model] rate served by pools outside this task, on devices that are not in `fleet`; empty: none.
  std::vector<double> served = {};
  double served_of(size_t model) const { return served.empty() ? 0 : served[model]; }
};

// Pools for every model; fleet_planner.cc computes rates and value.
struct FleetAnswer {
  std::vector<ModelPlan> models;
  // What the planner itself knows: a bound, or that its plan is optimal.
  std::optional<double> bound;
  bool optimal = false;
  Proof proof;  // of the bound
};

Result<FleetAnswer> plan_dp(const FleetTask& task);
Result<FleetAnswer> plan_columns(const FleetTask& task);
Result<FleetAnswer> plan_milp(const FleetTask& task);
Result<FleetAnswer> plan_np(const FleetTask& task);
Result<FleetAnswer> plan_dart_r(const FleetTask& task);
// True if plan_dp() applies: at most two classes with devices, and tables of moderate size.
bool dp_fits(const Fleet& fleet);
// plan_dp() if it applies, else plan_columns().
Result<FleetAnswer> plan_by_columns(const FleetTask& task);

Error no_plan_serves(const FleetTask& task);

}  // namespace heddle
