// The suite ppipe: PPipe's public measurements (--input) and plans (--reference) beside Heddle's plans.
#include "bench_ppipe.h"

#include <algorithm>

#include "bench_ppipe_cases.h"
#include "heddle/base/file.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/spelling.h"
#include "suites.h"

namespace heddle::bench {
namespace {

struct Part {
  const char* name;
  Status (*run)(const PpipeBench&, std::vector<BenchRow>& rows);
  bool plays_published = false;  // simulates the published plans, so it needs their pools
  bool of_instances = true;      // --only may choose its instances
};
constexpr Part kSuiteParts[] = {{"plans", bench_ppipe_plans},
                                {"fleets", bench_ppipe_fleets, false, false},
                                {"simulation", bench_ppipe_simulation, true},
                                {"goodput", bench_ppipe_goodput, true},
                                {"ablation", bench_ppipe_ablation, true},
                                {"attainment", bench_ppipe_attainment, true},
                                {"realtime", bench_ppipe_realtime, true},
                                {"day", bench_ppipe_day},
                                {"speed", bench_ppipe_speed, true},
                                {"small", bench_ppipe_small}};

constexpr int kRepeats = 3;

bool is_named(const BenchOptions& options, const std::string& name) {
  return std::ranges::find(options.only, name) != options.only.end();
}

// If --only names instances alone, every part that has instances runs.
bool part_wanted(const BenchOptions& options, const Part& part) {
  const bool any = std::ranges::any_of(kSuiteParts, [&](const Part& p) { return is_named(options, p.name); });
  return any ? is_named(options, part.name) : options.only.empty() || part.of_instances;
}

// Clusters with published plans are planned by group, the others also by model.
std::vector<std::string> instance_names(const PpipeBench& bench) {
  std::vector<std::string> names;
  for (const auto& cluster : bench.data.clusters) {
    names.push_back(cluster.name);
    for (const auto& group : bench.data.groups) names.push_back(cluster.name + "/" + group.name);
    if (std::ranges::any_of(bench.references, [&](const auto& r) { return r.cluster == cluster.name; }))
      continue;
    for (const auto& model : bench.data.models) names.push_back(cluster.name + "/" + model.name);
  }
  return names;
}

Status check_algorithms(const PpipeBench& bench) {
  for (const auto& r : bench.references)
    if (r.algorithm != "v4" && r.algorithm != "bl" && r.algorithm != "dart-r")
      return invalid_input("plan " + quote_text(r.plan_id) + ": algorithm " + quote_text(r.algorithm) +
                           ", expected v4 (PPipe), bl (NP) or dart-r");
  return {};
}

// Without pools a plan's rates would be 0, and every load would be served.
Status check_pools(const PpipeBench& bench, const std::string& part) {
  const auto path = ppipe_pools_path(bench.options.input, bench.options.reference);
  if (!file_exists(path))
    return not_found("there is no such file; part " + part +
                     " plays the published plans, whose pools it holds")
        .with_context(path);
  for (const auto& r : bench.references)
    if (ppipe_instance_wanted(bench.options, r.cluster, r.group) &&
        std::ranges::all_of(r.plan.models, [](const auto& m) { return m.pipelines.empty(); }))
      return invalid_input("it has no pool of plan " + quote_text(r.plan_id) + ", which part " + part +
                           " plays")
          .with_context(path);
  return {};
}

Status run_part(const PpipeBench& bench, const Part& part, std::vector<BenchRow>& rows) {
  if (part.plays_published) HEDDLE_RETURN_IF_ERROR(check_pools(bench, part.name));
  const size_t before = rows.size();
  HEDDLE_RETURN_IF_ERROR(part.run(bench, rows));
  if (rows.size() == before && is_named(bench.options, part.name))
    return invalid_input("part " + std::string(part.name) + " has none of the instances that --only names");
  return {};
}

}  // namespace

std::vector<std::string> ppipe_parts() {
  std::vector<std::string> names;
  for (const auto& part : kSuiteParts) names.emplace_back(part.name);
  return names;
}

BenchRow ppipe_row(const std::string& instance, const std::string& planner, const std::string& metric,
                   const std::string& unit, double value) {
  return bench_row("ppipe", instance, planner, metric, unit, value);
}

Result<PpipeMeasured> measure_fleet_plan(const PpipeBench& bench, const Fleet& fleet,
                                         const std::string& instance, const std::string& planner) {
  FleetPlan plan;
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    FleetPlanOptions options;
    options.deadline = bench.options.time_limit_s > 0
                           ? Deadline::after_seconds(bench.options.time_limit_s, bench.control.cancel)
                           : Deadline::never(bench.control.cancel);
    options.seed = static_cast<uint64_t>(bench.options.seed);
    auto planned = plan_fleet(fleet, planner, options);
    if (!planned.ok()) return std::move(planned).error().with_context(instance);
    plan = std::move(*planned);
    seconds.push_back(plan.planning_s);
  }
  auto rate = ppipe_row(instance, planner, "norm_rps", "/s", plan.value);
  rate.at_most(plan.bound);
  rate.seconds = median_us(seconds);
  return PpipeMeasured{std::move(plan), std::move(rate),
                       ppipe_row(instance, planner, "planning_s", "s", median_us(seconds))};
}

Status bench_ppipe(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (options.input.empty())
    return invalid_input(
        "this suite needs --input DIR, a folder with PPipe's tables (block_timing.csv, "
        "cuts.csv, clusters.json, models.json, ppipe_reference.csv, ppipe_reference_pools.csv)");
  PpipeBench bench{options, control, {}, {}};
  HEDDLE_ASSIGN_OR_RETURN(bench.data, read_ppipe_data(options.input));
  HEDDLE_ASSIGN_OR_RETURN(bench.references,
                          read_ppipe_references(bench.data, options.input, options.reference));
  HEDDLE_RETURN_IF_ERROR(check_algorithms(bench));
  auto names = ppipe_parts();
  const auto instances = instance_names(bench);
  names.insert(names.end(), instances.begin(), instances.end());
  HEDDLE_RETURN_IF_ERROR(check_parts(options, names));
  const auto draws = [&](const Part& part) {
    return std::string_view(part.name) == "attainment" && part_wanted(options, part);
  };
  if (!options.picture.empty() && std::ranges::none_of(kSuiteParts, draws))
    return invalid_input("--picture: part attainment draws it; add it to --only");
  for (const auto& part : kSuiteParts)
    if (part_wanted(options, part)) HEDDLE_RETURN_IF_ERROR(run_part(bench, part, rows));
  return {};
}

}  // namespace heddle::bench
