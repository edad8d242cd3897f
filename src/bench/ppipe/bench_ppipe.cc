// The suite ppipe: PPipe's public measurements (--input) and plans (--reference) beside Heddle's plans.
#include "bench_ppipe.h"

#include "heddle/runtime/sampling.h"

namespace heddle::bench {
namespace {

struct Part {
  const char* name;
  Result<std::vector<BenchRow>> (*run)(const PpipeBench&);
};
constexpr Part kSuiteParts[] = {
    {"plans", bench_ppipe_plans},           {"fleets", bench_ppipe_fleets},
    {"simulation", bench_ppipe_simulation}, {"goodput", bench_ppipe_goodput},
    {"ablation", bench_ppipe_ablation},     {"attainment", bench_ppipe_attainment},
    {"realtime", bench_ppipe_realtime},     {"day", bench_ppipe_day},
    {"speed", bench_ppipe_speed},           {"small", bench_ppipe_small}};

constexpr int kRepeats = 3;

}  // namespace

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
  rate.bound = plan.bound;
  rate.seconds = median_us(seconds);
  return PpipeMeasured{std::move(plan), std::move(rate),
                       ppipe_row(instance, planner, "planning_s", "s", median_us(seconds))};
}

Result<std::vector<BenchRow>> bench_ppipe(const BenchOptions& options, const Control& control) {
  if (options.input.empty())
    return invalid_input(
        "this suite needs --input DIR, a folder with PPipe's tables (block_timing.csv, "
        "cuts.csv, clusters.json, models.json, ppipe_reference.csv)");
  PpipeBench bench{options, control, {}, {}};
  HEDDLE_ASSIGN_OR_RETURN(bench.data, read_ppipe_data(options.input));
  HEDDLE_ASSIGN_OR_RETURN(bench.references,
                          read_ppipe_references(bench.data, options.input, options.reference));
  std::vector<BenchRow> rows;
  for (const auto& part : kSuiteParts) {
    if (!wanted(options, part.name)) continue;
    HEDDLE_ASSIGN_OR_RETURN(const auto more, part.run(bench));
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace heddle::bench
