// Explains a fleet plan: the bottleneck of each pool and pipeline, the use of each class, and the gain from
// more devices.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

struct PoolView {
  size_t model = 0, pipeline = 0, partition = 0;
  double devices = 0;     // count / share
  double rate_per_s = 0;  // the rate that the pool alone sustains
  double busy = 0;        // the pipeline's rate / rate_per_s
  std::string binds;      // of the slowest pool: "devices" (compute) or "NIC"; otherwise ""
};

struct PipelineView {
  size_t model = 0, pipeline = 0;
  double latency_us = 0;        // of one request: filling and running a planned batch, without the margin
  double limit_us = 0;          // SLO less margin
  bool deadline_binds = false;  // a batch larger by one request would be late
};

struct ClassView {
  int64_t used = 0, count = 0;
  double with_one_more = 0;  // objective value of a plan with one more device of the class; NaN: not computed
};

struct FleetExplanation {
  std::vector<PoolView> pools;
  std::vector<PipelineView> pipelines;
  std::vector<ClassView> classes;  // in the fleet's order
  double planned = NAN;  // objective value of the planner's own plan of the fleet; NaN: not computed
  double requests_per_s = 0;
  double cost_per_hour = 0, watts = 0;  // of the used devices
  double cost_per_million = 0;          // cost per million requests at the planned rates
};

// The plan must pass check_fleet_plan(). `planner` runs with the plan's margins once for the fleet, unless it made the
// plan, and once more for every class; empty: it does not run. What it has no time for, and classes without the price
// that the objective needs, are NaN.
Result<FleetExplanation> explain_fleet_plan(const Fleet& fleet, const FleetPlan& plan,
                                            const std::string& planner, const FleetPlanOptions& options);

}  // namespace heddle
