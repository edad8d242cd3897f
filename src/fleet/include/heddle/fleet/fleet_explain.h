// Why a fleet plan looks as it does: what binds each pool and pipeline, how classes are used, what more
// devices bring.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"

namespace heddle {

struct PoolView {
  size_t model = 0, pipeline = 0, partition = 0;
  double devices = 0;     // count / share
  double rate_per_s = 0;  // that the pool alone sustains
  double busy = 0;        // the pipeline's rate over it
  std::string binds;      // of the slowest pool: "devices" (their compute) or "NIC"; of the others ""
};

struct PipelineView {
  size_t model = 0, pipeline = 0;
  double latency_us = 0;        // of one request at the planned batch, with filling it, without the margin
  double limit_us = 0;          // SLO less margin
  bool deadline_binds = false;  // one request more in the batch would be late
};

struct ClassView {
  int64_t used = 0, count = 0;
  double with_one_more =
      0;  // the objective's value of a plan with one more device of the class; NaN: not asked for
};

struct FleetExplanation {
  std::vector<PoolView> pools;
  std::vector<PipelineView> pipelines;
  std::vector<ClassView> classes;  // as the fleet's
  double requests_per_s = 0;
  double cost_per_hour = 0, watts = 0;  // of the devices used
  double cost_per_million = 0;          // requests, at the planned rates
};

// The plan must hold (check_fleet_plan()). `planner` is asked once more for every class; empty: not asked.
Result<FleetExplanation> explain_fleet_plan(const Fleet& fleet, const FleetPlan& plan,
                                            const std::string& planner, const FleetPlanOptions& options);

}  // namespace heddle
