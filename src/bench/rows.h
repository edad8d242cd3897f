// What the suites share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/stopwatch.h"
#include "heddle/bench/bench.h"
#include "heddle/cost/cost_model.h"
#include "heddle/planners/planner.h"

namespace heddle::bench {

BenchRow bench_row(std::string suite, std::string instance, std::string planner, std::string metric,
                   std::string unit, double value);
// For one planner's row: its trajectory, up to the time that it was given.
void set_trajectory(BenchRow& row, std::vector<Incumbent> trajectory, double horizon_s);
// The rows from `first` on are of one instance: primal integrals are measured from the best value among them
// or `reference` (0: none).
void share_best_known(std::vector<BenchRow>& rows, size_t first, double reference = 0);

// The graph on the cluster of that name, with the model's times.
Result<Problem> bench_problem(std::shared_ptr<const Graph> graph, const std::string& cluster,
                              const CostModel& model);

// Is this part of the suite to be run?
bool wanted(const BenchOptions& options, std::string_view part);
// For a planner that begins now; infinite `seconds`: no limit.
PlannerOptions planner_options(const BenchOptions& options, double seconds, const Control& control);

}  // namespace heddle::bench
