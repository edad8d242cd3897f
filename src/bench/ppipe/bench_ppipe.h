// Parts of the suite ppipe: each gives rows from the same data; a new part is one file and one line in
// bench_ppipe.cc.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/ppipe_data.h"
#include "rows.h"

namespace heddle::bench {

struct PpipeBench {
  const BenchOptions& options;
  const Control& control;
  PpipeData data;
  std::vector<PpipeReference> references;
};

// The published plans beside ours: rates and planning times of PPipe, NP and DART-r.
Result<std::vector<BenchRow>> bench_ppipe_plans(const PpipeBench& bench);
// Three and four classes, and fleets of 100 to 100,000 devices.
Result<std::vector<BenchRow>> bench_ppipe_fleets(const PpipeBench& bench);
// Plans under load: the published ones and ours, beside the paper's figures.
Result<std::vector<BenchRow>> bench_ppipe_simulation(const PpipeBench& bench);
// The simulator's events a second of processor time on each of those plans and beside SimGrid's, and the time
// of a decision.
Result<std::vector<BenchRow>> bench_ppipe_speed(const PpipeBench& bench);
// The same beside the bound on any scheduler, in steps of .01, over ten seeds.
Result<std::vector<BenchRow>> bench_ppipe_goodput(const PpipeBench& bench);
// What each policy of the data plane brings, left out and alone.
Result<std::vector<BenchRow>> bench_ppipe_ablation(const PpipeBench& bench);
// Requests in time over the load factor, and their picture.
Result<std::vector<BenchRow>> bench_ppipe_attainment(const PpipeBench& bench);
// A day that plans follow.
Result<std::vector<BenchRow>> bench_ppipe_day(const PpipeBench& bench);
// Plans served in real time by timed devices, beside their simulation.
Result<std::vector<BenchRow>> bench_ppipe_realtime(const PpipeBench& bench);
// The clusters without published plans, one model at a time, as on the paper's testbed (section 7.3).
Result<std::vector<BenchRow>> bench_ppipe_small(const PpipeBench& bench);

BenchRow ppipe_row(const std::string& instance, const std::string& planner, const std::string& metric,
                   const std::string& unit, double value);
// Rows of one plan: its normalised rate with bound, and the seconds that it took (the median of three).
struct PpipeMeasured {
  FleetPlan plan;
  BenchRow rate, seconds;
};
Result<PpipeMeasured> measure_fleet_plan(const PpipeBench& bench, const Fleet& fleet,
                                         const std::string& instance, const std::string& planner);

}  // namespace heddle::bench
