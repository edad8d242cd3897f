// Planners and the solvers' bounds where loads can be avoided: direct host access, resident and dropped
// parameters, fixed sharing; and the baselines for cold starts.
#include <gtest/gtest.h>

#include <algorithm>

#include "bounds/cut_bound.h"
#include "bounds/lp_bound.h"
#include "heddle/plan/relaxation.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"
#include "random_small.h"
#include "search/cp_schedule.h"

namespace heddle::test {
namespace {

PlanResult planned(const std::string& planner, const Problem& problem, double seconds = 5) {
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(seconds);
  auto result = run_planner(*find_planner(planner), problem, options);
  EXPECT_TRUE(result.ok()) << planner << ": " << result.error().to_string();
  return result.ok() ? std::move(*result) : PlanResult();
}

// A chain of four ops of 10 us with 100, 100, 100 and 8 bytes of parameters.
Problem chain_on_two() {
  auto graph = make_graph(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}, {100, 100, 100, 8});
  return make_problem(graph, two_gpus(false), std::vector<std::vector<double>>(4, {10, 1000}),
                      Objective::kColdLatency);
}

void allow_host_access(Problem& p, const std::vector<double>& us) {
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t v = 0; v < us.size(); ++v) {
    costs->set_host_access(OpId(v), DeviceId(0), us[v]);
    costs->set_host_access(OpId(v), DeviceId(1), us[v] + 1000);
  }
  p.costs = costs;
}

TEST(ColdSingle, LoadsBeforeOrWhileItRuns) {
  const Problem p = chain_on_two();
  EXPECT_NEAR(planned("cold-serial", p).value_us, 308 + 40, 1e-9);
  // The third op's load ends at 300, the last one's at 308, while the third op runs.
  EXPECT_NEAR(planned("cold-single", p).value_us, 300 + 10 + 10, 1e-9);
}

// The parameters over both buses: 100 + 100 at once, then 100 and 8; so the third op's come last, at 200.
TEST(DeepPlan, UsesTheOtherDevicesBus) {
  const Problem p = chain_on_two();
  const PlanResult r = planned("deepplan", p);
  EXPECT_NEAR(r.value_us, 200 + 10 + 10, 1e-9);
  EXPECT_EQ(std::count_if(r.plan.steps.begin(), r.plan.steps.end(),
                          [](const Step& s) { return s.kind == StepKind::kLoad && s.route >= 0; }),
            2);
  for (const Segment& s : r.plan.segments) EXPECT_EQ(s.device, DeviceId(0));
}

// In place the first op takes 20 us where its load takes 100: it runs at once, while one load uses the other
// bus.
TEST(DeepPlan, ReadsInPlaceWhatIsSlowerToLoad) {
  Problem p = chain_on_two();
  const double loaded = planned("deepplan", p).value_us;
  allow_host_access(p, {20, 150, 150, 500});
  const PlanResult r = planned("deepplan", p);
  EXPECT_LT(r.value_us, loaded - 50);
  EXPECT_TRUE(r.plan.segments[0].host_access);
  // Where reading in place never pays, nobody does.
  allow_host_access(p, {1e4, 1e4, 1e4, 1e4});
  const PlanResult none = planned("deepplan", p);
  EXPECT_NEAR(none.value_us, loaded, 1e-9);
  for (const Segment& s : none.plan.segments) EXPECT_FALSE(s.host_access);
}

TEST(DeepPlan, ReadsInPlaceWhatDoesNotFit) {
  auto graph = make_graph(2, {{0, 1, 1}}, {100, 100});
  Problem p =
      make_problem(graph, make_mixed(150), std::vector<std::vector<double>>(2, std::vector<double>(4, 10)),
                   Objective::kColdLatency);
  const auto gpu_only = [&] {
    p.devices.clear();
    for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
      if (needs_load(*p.cluster, DeviceId(d))) p.devices.emplace_back(d);
    }
    p.devices.resize(1);
  };
  ASSERT_EQ(p.cluster->num_devices(), p.costs->num_devices());
  gpu_only();
  PlannerOptions options;
  EXPECT_FALSE(run_planner(*find_planner("deepplan"), p, options).ok());
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t v = 0; v < 2; ++v) costs->set_host_access(OpId(v), p.devices[0], 1e4);
  p.costs = costs;
  const PlanResult r = planned("deepplan", p);
  EXPECT_EQ(std::count_if(r.plan.segments.begin(), r.plan.segments.end(),
                          [](const Segment& s) { return s.host_access; }),
            1);
}

void add_cold_start(Random& random, Problem& p) {
  auto costs = std::make_shared<CostTable>(*p.costs);
  p.execution.fixed_sharing = random.chance(0.3);
  p.execution.parameter_drops = random.chance(0.3);
  for (size_t v = 0; v < costs->num_ops(); ++v) {
    for (size_t d = 0; d < costs->num_devices(); ++d) {
      if (random.chance(0.6)) costs->set_host_access(OpId(v), DeviceId(d), random.uniform(0.5, 30));
    }
  }
  p.costs = costs;
  if (random.chance(0.5)) return;
  p.resident.resize(static_cast<size_t>(p.cluster->num_memory_pools()));
  for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
    if (!needs_load(*p.cluster, DeviceId(d))) continue;
    for (size_t q = 0; q < p.graph->num_params(); ++q) {
      if (random.chance(0.3))
        p.resident[static_cast<size_t>(p.cluster->memory_pool(DeviceId(d)))].emplace_back(q);
    }
  }
}

// The least makespan over all devices and choices of host access in the graph's own order: no less than the
// optimum, so no bound may be above it.
double least_built_us(const Problem& p) {
  const size_t n = p.graph->num_ops(), k = 2 * p.cluster->num_devices();
  Evaluator evaluator(p);
  Assignment a;
  a.order.assign(p.graph->topological_order().begin(), p.graph->topological_order().end());
  a.device.resize(n);
  a.host_access.resize(n);
  double least = kImpossible;
  size_t combinations = 1;
  for (size_t v = 0; v < n; ++v) combinations *= k;
  for (size_t c = 0; c < combinations; ++c) {
    size_t rest = c;
    for (size_t v = 0; v < n; ++v, rest /= k) {
      a.device[v] = DeviceId(rest % k / 2);
      a.host_access[v] = rest % 2;
    }
    const auto plan = build_plan(p, a);
    if (!plan.ok()) continue;
    const auto t = evaluator.evaluate(*plan, {.critical = false});
    if (!t.ok()) continue;
    bool fits = true;
    for (size_t pool = 0; pool < t->peak_memory_bytes.size(); ++pool) {
      const int64_t limit = p.cluster->memory_pool_bytes(static_cast<int>(pool));
      fits = fits && (limit <= 0 || t->peak_memory_bytes[pool] <= limit);
    }
    if (fits) least = std::min(least, t->makespan_us);
  }
  return least;
}

TEST(ColdStart, NoBoundIsAboveABuiltPlanAndEveryPlanIsVerified) {
  Random random(81);
  int problems_tried = 0, plans = 0;
  for (int round = 0; round < 400; ++round) {
    Problem p = random_small_problem(random, Objective::kColdLatency);
    if (p.graph->num_ops() > 4 || p.cluster->num_devices() > 3) continue;
    add_cold_start(random, p);
    ASSERT_TRUE(validate(p).ok()) << validate(p).error().to_string();
    const double best = least_built_us(p);
    if (!(best < kImpossible)) continue;
    const auto holds = [&](double bound_us) { return bound_us <= best * (1 + 1e-9) + 1e-9; };
    ++problems_tried;
    const FlatProblem flat(p, p.usable_devices());
    const Relaxation relaxation = relax(p);
    ASSERT_TRUE(holds(lower_bound(p).us)) << round;
    ASSERT_TRUE(holds(destructive_bound(p, {}, kImpossible).us)) << round;
    ASSERT_TRUE(holds(cut_bound(flat, relaxation, 0, {}).us)) << round;
    if (round % 4 == 0) {
      ASSERT_TRUE(holds(lp_bound(flat, relaxation, {}).us)) << round;
    }
    if (round % 20 != 0) continue;
    for (const PlannerEntry& entry : planner_registry()) {
      if (!entry.supports(p)) continue;
      PlannerOptions options;
      options.deadline = Deadline::after_seconds(0.05);
      const auto result = run_planner(entry, p, options);
      if (!result.ok()) {
        ASSERT_NE(result.error().code(), Code::kInternal)
            << entry.info.name << ": " << result.error().to_string();
        continue;
      }
      ASSERT_TRUE(result->verified && holds(result->bound.us)) << entry.info.name << " at " << round;
      ++plans;
    }
  }
  EXPECT_GT(problems_tried, 60);
  EXPECT_GT(plans, 40);
}

}  // namespace
}  // namespace heddle::test
