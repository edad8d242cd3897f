// Constructing and searching stages: optimal where that can be known, never worse than what they start from,
// the same for the same seed, and better than HIOS on its simulation.
#include "hios/stage_search.h"

#include <gtest/gtest.h>

#include "hios/hios.h"
#include "planners_support.h"
#include "stage_support.h"

namespace heddle::test {
namespace {

double makespan(const StageInstance& instance, const StageSchedule& schedule) {
  const auto timing = time_stages(instance, schedule);
  EXPECT_TRUE(timing.ok()) << timing.error().message();
  return timing.ok() ? timing->makespan_us : kNoTime;
}

RandomStages small(Random& random) {
  RandomStages o;
  o.ops = 1 + random.below(5);
  o.devices = 1 + random.below(3);
  o.width = 1 + random.below(3);
  o.unequal = random.chance(0.5);
  o.density = random.uniform(0.1, 0.8);
  return o;
}

TEST(StageSearch, FindsTheOptimumOfSmallInstances) {
  Random random(31);
  int found = 0;
  for (int round = 0; round < 400; ++round) {
    const auto instance = random_stages(random, small(random));
    const auto result = search_stages(instance, {.steps = 1'000});
    ASSERT_TRUE(result.ok());
    EXPECT_DOUBLE_EQ(result->makespan_us, makespan(instance, result->best));
    const double optimum = brute_force_stages(instance);
    ASSERT_GE(result->makespan_us, optimum * (1 - 1e-12));
    found += result->makespan_us <= optimum * (1 + 1e-9);
  }
  EXPECT_GE(found, 396);  // a search may miss one
}

TEST(StageSearch, IsNeverWorseThanItsStarts) {
  Random random(32);
  for (int round = 0; round < 60; ++round) {
    RandomStages o;
    o.ops = 5 + random.below(50);
    o.devices = 1 + random.below(6);
    o.unequal = random.chance(0.4);
    o.density = random.uniform(0.02, 0.3);
    const auto instance = random_stages(random, o);
    const auto result = search_stages(instance, {.steps = 50});
    ASSERT_TRUE(result.ok());
    for (const auto make : {hios_lp_inter, hios_mr_inter, heft_inter, construct_stages}) {
      const auto start = make(instance, {});
      if (!start.ok()) continue;
      EXPECT_LE(result->makespan_us, makespan(instance, hios_parallelize(instance, *start, {})) * (1 + 1e-9));
    }
    EXPECT_LE(result->makespan_us, result->start_us);
  }
}

TEST(StageSearch, IsTheSameForASeedAndThreads) {
  Random random(33);
  RandomStages o;
  o.ops = 60;
  o.devices = 4;
  o.density = 0.06;
  const auto instance = random_stages(random, o);
  for (const int threads : {1, 3}) {
    const StageSearchOptions options{.steps = 3'000, .seed = 5, .threads = threads};
    const auto a = search_stages(instance, options), b = search_stages(instance, options);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->best.devices, b->best.devices);
    EXPECT_EQ(a->timed, b->timed);
    EXPECT_EQ(a->steps, 3'000U * static_cast<unsigned>(threads));
  }
}

TEST(StageSearch, StopsAtABoundAndAtOnceWhenCancelled) {
  Random random(34);
  RandomStages o;
  o.ops = 40;
  o.devices = 3;
  const auto instance = random_stages(random, o);
  const auto stopped = search_stages(instance, {.bound_us = 1e12});
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->steps, 0U);
  CancelToken token;
  token.cancel();
  const auto cancelled = search_stages(instance, {.deadline = Deadline::never(token)});
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code(), Code::kCancelled);
}

TEST(StageSearch, SaysWhenOpsCannotMeet) {
  StageInput in;
  in.ops = 2;
  in.devices = 2;
  in.us = {1, kNoTime, kNoTime, 1};
  in.edges = {{0, 1, 1}};
  in.latency_us = {0, kNoTime, kNoTime, 0};
  in.us_per_byte = {0, 0, 0, 0};
  const auto result = search_stages(StageInstance(in), {.steps = 10});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kInfeasible);
}

TEST(StageSearch, HandlesOpsWithoutTime) {
  StageInput in;
  in.ops = 3;
  in.devices = 2;
  in.us.assign(6, 0);
  in.edges = {{0, 1, 5}, {0, 2, 5}};
  in.latency_us = {0, 1, 1, 0};
  in.us_per_byte = {0, 1, 1, 0};
  const auto result = search_stages(StageInstance(in), {.steps = 100});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->makespan_us, 0);
}

// The public simulation of HIOS: ratios to HIOS-LP over the first five instances.
TEST(StageSearch, BeatsHiosOnItsSimulation) {
  for (const auto& [devices, list_ratio, search_ratio, gap] :
       {std::tuple{4, 0.95, 0.92, 1.035}, {8, 0.86, 0.83, 1.25}, {12, 0.85, 0.80, 1.6}}) {
    double listed = 0, searched = 0, over_bound = 0;
    constexpr int kCount = 5;
    for (int i = 0; i < kCount; ++i) {
      const auto instance = hios_sim(2001 + i, static_cast<size_t>(devices));
      if (!instance) GTEST_SKIP() << "HEDDLE_SHARED does not lead to the public data";
      const auto lp = hios_lp_inter(*instance, {});
      ASSERT_TRUE(lp.ok());
      const double hios = makespan(*instance, hios_parallelize(*instance, *lp, {}));
      const auto list = construct_stages(*instance, {});
      ASSERT_TRUE(list.ok());
      const auto search = search_stages(*instance, {.steps = 25'000});
      ASSERT_TRUE(search.ok());
      listed += makespan(*instance, *list) / hios / kCount;
      searched += search->makespan_us / hios / kCount;
      const double bound = bound_of(*instance, search->makespan_us).us;
      EXPECT_LE(bound, search->makespan_us);
      over_bound += search->makespan_us / bound / kCount;
    }
    EXPECT_LE(listed, list_ratio) << devices;
    EXPECT_LE(searched, search_ratio) << devices;
    EXPECT_LE(over_bound, gap) << devices;
  }
}

// Through run_planner(): plans with stages, verified by the checker and not below the bound.
TEST(StageSearch, PlansProblemsWithStages) {
  Random random(36);
  for (int round = 0; round < 12; ++round) {
    const int ops = 12;
    auto graph = make_graph(ops, random_wires(random, ops, 0.2));
    auto cluster = make_mesh(3);
    Problem problem = make_problem(graph, cluster, random_times(random, ops, 3), Objective::kLatency);
    auto costs = std::make_shared<CostTable>(*problem.costs);
    for (const DeviceId d : problem.usable_devices()) {
      costs->set_stage_model(d, {0.5, 0.5, 0});
      for (int v = 0; v < ops; ++v)
        costs->set_utilization(OpId(static_cast<size_t>(v)), d, random.uniform(0.2, 1));
    }
    problem.costs = costs;
    problem.execution = {.link_contention = false, .engine_contention = false, .stage_width = 2};
    PlannerOptions options;
    options.deadline = Deadline::after_seconds(0.2);
    double list_us = 0;
    for (const char* name : {"stage-list", "stage-search"}) {
      const auto result = run_planner(*find_planner(name), problem, options);
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_TRUE(result->verified);
      EXPECT_LE(result->bound.us, result->value_us);
      if (list_us > 0) {
        EXPECT_LE(result->value_us, list_us * (1 + 1e-9));
      }
      list_us = result->value_us;
    }
  }
}

}  // namespace
}  // namespace heddle::test
