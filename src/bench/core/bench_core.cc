// The core suite: how fast Heddle itself plans, evaluates and executes.

#include "core/executor_bench.h"
#include "heddle/base/quantiles.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/generators.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr int kOps = 50'000, kLayers = 500, kDeps = 100'000, kDevices = 8;

// Eight unequal devices, all to all.
Result<std::shared_ptr<const Cluster>> unequal_devices() {
  ClusterBuilder builder("unequal-8");
  const auto host = builder.add_host({"host", 0});
  std::vector<NodeId> nodes;
  for (int i = 0; i < kDevices; ++i) {
    Device d;
    d.name = "d" + std::to_string(i);
    d.device_class = "class" + std::to_string(i);
    d.host = host;
    d.peak_flops = 1e13;
    d.memory_bytes_per_s = 1e12;
    nodes.push_back(builder.device_node(builder.add_device(d)));
  }
  for (int i = 0; i < kDevices; ++i) {
    for (int j = i + 1; j < kDevices; ++j) {
      Link link;
      link.name = "l" + std::to_string(i) + "-" + std::to_string(j);
      link.a = nodes[static_cast<size_t>(i)];
      link.b = nodes[static_cast<size_t>(j)];
      link.bytes_per_s = 1e9;
      builder.add_link(link);
    }
  }
  return builder.build();
}

Result<Problem> large_problem(uint64_t seed) {
  LayeredOptions layered;
  layered.ops = kOps;
  layered.layers = kLayers;
  layered.deps = kDeps;
  layered.seed = seed;
  for (int i = 0; i < kDevices; ++i)
    layered.device_class_factors.emplace_back("class" + std::to_string(i), 1 + 0.25 * i);
  layered.device_spread = 0.3;
  Problem problem;
  HEDDLE_ASSIGN_OR_RETURN(problem.graph, generate_layered(layered));
  HEDDLE_ASSIGN_OR_RETURN(problem.cluster, unequal_devices());
  const auto model = given_cost_model();
  HEDDLE_ASSIGN_OR_RETURN(auto costs, build_cost_table(*problem.graph, *problem.cluster, *model, {}));
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  return problem;
}

BenchRow row(const std::string& instance, const std::string& planner, const std::string& metric,
             const std::string& unit, double value) {
  return bench_row("core", instance, planner, metric, unit, value);
}

constexpr int64_t kCoreRepeats = 5;

Status bench_executor_rows(const BenchOptions& options, std::vector<BenchRow>& rows) {
  ExecutorBenchOptions bench;
  bench.repeats = static_cast<int>(options.repeats.value_or(kCoreRepeats)) * 2 + 1;
  bench.seed = static_cast<uint64_t>(options.seed);
  HEDDLE_ASSIGN_OR_RETURN(const auto result, bench_executor(bench));
  auto r = row("zero-cost, " + std::to_string(result.tasks) + " tasks", "", "time a task", "us",
               result.executor_us_per_task);
  r.beside("thread pool", result.pool_us_per_task);
  r.against(0.5, "target");
  rows.push_back(r);
  return {};
}

Status bench_core_planning(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, large_problem(static_cast<uint64_t>(options.seed)));
  const auto instance = std::to_string(kOps) + " ops, " + std::to_string(kDevices) + " devices";
  const int64_t repeats = options.repeats.value_or(kCoreRepeats);
  PlanResult last;
  std::vector<double> seconds[2];
  const char* planners[2] = {"heft", "round-robin"};
  for (int64_t i = 0; i < repeats; ++i) {
    for (const int which : {1, 0}) {
      PlannerOptions planner_options;
      planner_options.deadline = Deadline::never(control.cancel);
      const Stopwatch watch;
      HEDDLE_ASSIGN_OR_RETURN(last, run_planner(*find_planner(planners[which]), problem, planner_options));
      seconds[which].push_back(watch.seconds());
    }
  }
  auto plan_row = row(instance, "heft", "planning", "s", median_us(seconds[0]));
  plan_row.beside("round-robin", median_us(seconds[1]));
  plan_row.against(1, "target");
  rows.push_back(plan_row);

  std::vector<double> rate;
  EvaluateOptions lean;
  lean.critical = lean.resources = false;
  Evaluator evaluator(problem);
  Timeline timeline;
  const auto steps = static_cast<double>(last.plan.steps.size());
  for (int64_t i = 0; i < 2 * repeats + 1; ++i) {
    const Stopwatch watch;
    HEDDLE_RETURN_IF_ERROR(evaluator.evaluate(last.plan, lean, timeline));
    rate.push_back(steps / watch.seconds());
  }
  const Stopwatch watch;
  if (!check(problem, last.plan, last.timeline).ok())
    return internal_error("the checker rejects heft's plan");
  auto eval_row = row(instance, "heft", "evaluator steps", "1/s", median_us(rate));
  eval_row.beside("checker steps", steps / watch.seconds());
  eval_row.against(5e6, "target");
  rows.push_back(eval_row);
  rows.push_back(row(instance, "heft", "gap to bound", "%", 100 * last.gap));
  return {};
}

}  // namespace

Status bench_core(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (wanted(options, "planning"))
    HEDDLE_RETURN_IF_ERROR(
        whole_instance(control, rows, [&] { return bench_core_planning(options, control, rows); }));
  if (wanted(options, "executor"))
    HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&] { return bench_executor_rows(options, rows); }));
  return {};
}

}  // namespace heddle::bench
