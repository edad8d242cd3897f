// Device-hours of a day whose load plans follow, beside one plan for its peak, plans in hindsight and the bound.
#include <algorithm>

#include "bench_ppipe_cases.h"
#include "heddle/fleet/estimated_rates.h"
#include "heddle/fleet/follow.h"

namespace heddle::bench {
namespace {

constexpr const char* kDayInstances[] = {"HC1-L/G1", "HC3-L/G2"};
constexpr const char* kDayTraffics[] = {"diurnal", "functions"};
constexpr double kDaySeconds = 600, kDaySwing = .8, kDayInvocations_per_s = 5;
constexpr double kDayPeak = .85;      // of the greatest planned rate
constexpr double kWantedSaving = 20;  // % of the device-hours of one plan for the peak

Result<std::vector<Arrival>> day_arrivals(const Fleet& fleet, bool functions, uint64_t seed) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto"));
  std::vector<double> rates;
  for (const auto& m : fleet.models) rates.push_back(kDayPeak * plan.value * m.weight / (1 + kDaySwing));
  if (!functions)
    return make_arrivals({.kind = TrafficKind::kDiurnal, .swing = kDaySwing, .period_s = kDaySeconds}, rates,
                         kDaySeconds, seed);
  HEDDLE_ASSIGN_OR_RETURN(
      const auto text,
      synthetic_function_trace({.duration_s = 86400, .rate_per_s = kDayInvocations_per_s, .swing = kDaySwing},
                               seed));
  HEDDLE_ASSIGN_OR_RETURN(const auto trace, function_trace_from_csv(text));
  return arrivals_in_shape(trace, rates, kDaySeconds, seed);
}

Result<std::vector<BenchRow>> day_rows(const PpipeBench& bench, const Fleet& fleet,
                                       const std::string& instance, bool functions) {
  const auto seed = static_cast<uint64_t>(bench.options.seed);
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, day_arrivals(fleet, functions, seed));
  FollowOptions options;
  options.duration_s = kDaySeconds;
  options.attainment = kPpipeAttainment;
  options.simulation.seed = seed;
  options.simulation.cancel = bench.control.cancel;
  options.progress = bench.control.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto day, follow_load(fleet, arrivals, options));
  const std::string name = instance + ", " + kDayTraffics[functions];
  std::vector<BenchRow> rows;
  const auto hours = [&](const char* what, double value) {
    rows.push_back(ppipe_row(name, "auto", what, "device-hours", value));
    rows.back().at_least(day.bound_device_hours);
  };
  hours("static peak", day.fixed.device_hours);
  hours("rolling", day.rolling.device_hours);
  hours("hindsight", day.hindsight.device_hours);
  rows.push_back(ppipe_row(name, "auto", "rolling under static peak", "%",
                           100 * (1 - day.rolling.device_hours / day.fixed.device_hours)));
  rows.back().against(kWantedSaving, "goal");
  rows.push_back(
      ppipe_row(name, "auto", "static peak, in time, worst model", "%", 100 * day.fixed.attainment));
  rows.push_back(ppipe_row(name, "auto", "rolling, in time, worst model", "%", 100 * day.rolling.attainment));
  rows.push_back(
      ppipe_row(name, "auto", "rolling, changes", "", static_cast<double>(day.rolling.changes.size() - 1)));
  return rows;
}

// The usual instances that are wanted, and the groups that --only names.
std::vector<std::pair<std::string, const PpipeGroup*>> day_instances(const PpipeBench& bench) {
  std::vector<std::pair<std::string, const PpipeGroup*>> list;
  for (const auto& cluster : bench.data.clusters)
    for (const auto& group : bench.data.groups) {
      const auto name = cluster.name + "/" + group.name;
      const bool usual = std::ranges::find(kDayInstances, name) != std::end(kDayInstances);
      const bool named = std::ranges::find(bench.options.only, name) != bench.options.only.end();
      if (named || (usual && ppipe_instance_wanted(bench.options, cluster.name, group.name)))
        list.emplace_back(cluster.name, &group);
    }
  return list;
}

}  // namespace

Status bench_ppipe_day(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  for (const auto& [cluster, group] : day_instances(bench)) {
    const auto instance = cluster + "/" + group->name;
    HEDDLE_ASSIGN_OR_RETURN(auto fleet, ppipe_fleet(bench.data, cluster, group->models, {}));
    HEDDLE_ASSIGN_OR_RETURN(const auto estimated, np_rates(fleet));
    HEDDLE_RETURN_IF_ERROR(set_estimated_rates(fleet, estimated));
    for (const bool functions : {false, true}) {
      auto day = day_rows(bench, fleet, instance, functions);
      if (!day.ok()) return std::move(day).error().with_context(instance);
      if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
      rows.insert(rows.end(), day->begin(), day->end());
    }
  }
  return {};
}

}  // namespace heddle::bench
