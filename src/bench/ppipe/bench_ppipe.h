// Parts of the suite ppipe: each appends rows from the same data; a new part is one file and one line in
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
Status bench_ppipe_plans(const PpipeBench& bench, std::vector<BenchRow>& rows);
// Three and four classes, and fleets of 100 to 100,000 devices.
Status bench_ppipe_fleets(const PpipeBench& bench, std::vector<BenchRow>& rows);
// Plans under load: the published ones and ours, beside the paper's figures.
Status bench_ppipe_simulation(const PpipeBench& bench, std::vector<BenchRow>& rows);
// The simulator's events a second of processor time on each of those plans and beside SimGrid's, and the time
// of a decision.
Status bench_ppipe_speed(const PpipeBench& bench, std::vector<BenchRow>& rows);
// The same beside the bound on any scheduler, in steps of .01, over ten seeds.
Status bench_ppipe_goodput(const PpipeBench& bench, std::vector<BenchRow>& rows);
// What each policy of the data plane brings, left out and alone.
Status bench_ppipe_ablation(const PpipeBench& bench, std::vector<BenchRow>& rows);
// Requests in time over the load factor, and their picture.
Status bench_ppipe_attainment(const PpipeBench& bench, std::vector<BenchRow>& rows);
// A day that plans follow.
Status bench_ppipe_day(const PpipeBench& bench, std::vector<BenchRow>& rows);
// Plans served in real time by timed devices, beside their simulation.
Status bench_ppipe_realtime(const PpipeBench& bench, std::vector<BenchRow>& rows);
// The clusters without published plans, one model at a time, as on the paper's testbed (section 7.3).
Status bench_ppipe_small(const PpipeBench& bench, std::vector<BenchRow>& rows);

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
