// The published plans beside ours.
#include <algorithm>
#include <map>

#include "bench_ppipe_cases.h"
#include "heddle/base/quantiles.h"

namespace heddle::bench {
namespace {

constexpr double kAtLeast = 1e-9;  // relative: published values carry so much rounding

const char* our_planner(const std::string& algorithm) {
  return algorithm == "bl" ? "np" : algorithm == "dart-r" ? "dart-r" : "auto";
}

}  // namespace

Status bench_ppipe_plans(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, int> reached, all;
  double done = 0;
  for (const auto& r : bench.references) {
    if (!ppipe_instance_wanted(bench.options, r.cluster, r.group)) continue;
    if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
    if (bench.control.progress)
      bench.control.progress->report(
          {"ppipe plans", done++, static_cast<double>(bench.references.size()), {}, {}});
    const std::string planner = our_planner(r.algorithm);
    HEDDLE_ASSIGN_OR_RETURN(auto m, measure_fleet_plan(bench, r.fleet, r.plan_id, planner));
    if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
    m.rate.baseline = m.seconds.baseline = "published " + r.algorithm;
    m.rate.baseline_value = r.norm_rate;
    m.seconds.baseline_value = r.planning_s;
    seconds[planner].push_back(m.seconds.value);
    ++all[planner];
    if (m.plan.value >= r.norm_rate * (1 - kAtLeast)) ++reached[planner];
    rows.push_back(std::move(m.rate));
    rows.push_back(std::move(m.seconds));
  }
  for (const auto& [planner, of_planner] : seconds) {
    auto row = ppipe_row("all", planner, "at least the published norm_rps", "plans", reached[planner]);
    row.against(all[planner], "plans of the reference");
    rows.push_back(std::move(row));
    rows.push_back(ppipe_row("all", planner, "planning_s, median", "s", median_us(of_planner)));
    rows.push_back(ppipe_row("all", planner, "planning_s, worst", "s",
                             *std::max_element(of_planner.begin(), of_planner.end())));
  }
  return {};
}

}  // namespace heddle::bench
