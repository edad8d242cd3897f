// Predictions of cold starts for cases worked out by hand, and cuts for cold starts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/random.h"
#include "heddle/plan/checker.h"
#include "heddle/runtime/cold_plan.h"
#include "support.h"

namespace heddle {
namespace {

std::vector<ColdTask> chain(std::initializer_list<std::pair<double, double>> compile_and_run) {
  std::vector<ColdTask> tasks;
  for (const auto& [compile, run] : compile_and_run) {
    ColdTask task;
    task.compile_us = compile;
    task.run_us = run;
    if (!tasks.empty()) task.after.push_back(static_cast<int32_t>(tasks.size()) - 1);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

double finish(const std::vector<ColdTimes>& times) {
  double last = 0;
  for (const auto& t : times) last = std::max(last, t.finish_us);
  return last;
}

TEST(ColdSchedule, OneWorkerOnFreeCoresOverlapsRunningWithLoading) {
  const auto tasks = chain({{10, 4}, {10, 4}, {10, 4}});
  const auto times = predict_cold_start(tasks, {.cores = 2, .load_workers = 1}).value();
  EXPECT_DOUBLE_EQ(times[0].start_us, 10);
  EXPECT_DOUBLE_EQ(times[1].ready_us, 20);
  EXPECT_DOUBLE_EQ(times[2].start_us, 30);
  EXPECT_DOUBLE_EQ(finish(times), 34);
}

TEST(ColdSchedule, WithoutOverlapTimesAddUp) {
  const auto tasks = chain({{10, 4}, {10, 4}, {10, 4}});
  const auto times = predict_cold_start(tasks, {.cores = 4, .load_workers = 3, .overlap = false}).value();
  EXPECT_DOUBLE_EQ(finish(times), 42);
}

TEST(ColdSchedule, TwoWorkersShareOneCore) {
  const auto tasks = chain({{10, 0}, {10, 0}});
  EXPECT_DOUBLE_EQ(finish(predict_cold_start(tasks, {.cores = 1, .load_workers = 2}).value()), 20);
  EXPECT_DOUBLE_EQ(finish(predict_cold_start(tasks, {.cores = 2, .load_workers = 2}).value()), 10);
}

TEST(ColdSchedule, ARunOnAllCoresSlowsLoadingDown) {
  auto tasks = chain({{10, 10}, {10, 0}});
  tasks[0].threads = 2;
  // From 10 on, three threads share two cores, so both take 10 * 3 / 2.
  const auto times = predict_cold_start(tasks, {.cores = 2, .load_workers = 1}).value();
  EXPECT_NEAR(times[0].finish_us, 25, 1e-9);
  EXPECT_NEAR(times[1].ready_us, 25, 1e-9);
}

TEST(ColdSchedule, TheBudgetHoldsLoadingBackUntilRoomIsMade) {
  auto tasks = chain({{10, 5}, {10, 5}});
  for (auto& t : tasks) {
    t.bytes = 100;
    t.stays = false;
  }
  EXPECT_DOUBLE_EQ(
      finish(predict_cold_start(tasks, {.cores = 4, .load_workers = 2, .budget_bytes = 150}).value()), 30);
  EXPECT_DOUBLE_EQ(
      finish(predict_cold_start(tasks, {.cores = 4, .load_workers = 2, .budget_bytes = 200}).value()), 20);
  tasks[0].stays = true;
  const auto stuck = predict_cold_start(tasks, {.cores = 4, .load_workers = 2, .budget_bytes = 150});
  ASSERT_FALSE(stuck.ok());
  EXPECT_EQ(stuck.error().code(), Code::kInfeasible);
}

TEST(ColdSchedule, ResidentsRunAtOnce) {
  auto tasks = chain({{10, 5}, {10, 5}});
  tasks[0].resident = true;
  const auto times = predict_cold_start(tasks, {.cores = 2, .load_workers = 1}).value();
  EXPECT_DOUBLE_EQ(times[0].start_us, 0);
  EXPECT_DOUBLE_EQ(times[1].ready_us, 10);
}

TEST(ColdSchedule, IsBetweenItsBoundsOnRandomTasks) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<ColdTask> tasks(1 + random.below(12));
    double work = 0, longest = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      ColdTask& t = tasks[i];
      t.load_us = random.uniform(0, 5);
      t.compile_us = random.uniform(0, 20);
      t.run_us = random.uniform(0, 10);
      for (size_t j = 0; j < i; ++j) {
        if (random.chance(0.3)) t.after.push_back(static_cast<int32_t>(j));
      }
      work += t.load_us + t.compile_us + t.run_us;
      longest = std::max(longest, t.load_us + t.compile_us + t.run_us);
    }
    ColdMachine machine;
    machine.cores = 1 + static_cast<int>(random.below(4));
    machine.load_workers = 1 + static_cast<int>(random.below(4));
    const auto times = predict_cold_start(tasks, machine).value();
    EXPECT_GE(finish(times), std::max(longest, work / machine.cores) - 1e-6);
    EXPECT_LE(finish(times), work + 1e-6);
    for (size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_GE(times[i].start_us, times[i].ready_us);
      for (const int32_t a : tasks[i].after)
        EXPECT_GE(times[i].start_us, times[static_cast<size_t>(a)].finish_us);
    }
  }
}

TEST(ColdSchedule, MalformedTasksAreErrors) {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(predict_cold_start(chain({{bad, 1}}), {}).ok());
    EXPECT_FALSE(predict_cold_start(chain({{1, bad}}), {}).ok());
  }
  auto tasks = chain({{1, 1}});
  tasks[0].after = {0};
  EXPECT_FALSE(predict_cold_start(tasks, {}).ok());
  tasks[0].after = {-1};
  EXPECT_FALSE(predict_cold_start(tasks, {}).ok());
  EXPECT_FALSE(predict_cold_start({}, {.cores = 0}).ok());
  EXPECT_FALSE(predict_cold_start({}, {.load_workers = 0}).ok());
  EXPECT_TRUE(predict_cold_start({}, {}).value().empty());
}

TEST(ColdPlan, IsFeasibleOnOneDeviceWithAtMostTheSegmentsAskedFor) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Problem problem = test::random_problem({.ops = 25,
                                                  .devices = 3,
                                                  .edge_probability = 0.15,
                                                  .max_us = 10,
                                                  .param_bytes = 1 << 20,
                                                  .seed = seed});
    for (const int segments : {1, 2, 5, 100}) {
      const auto plan = cold_plan(problem, {.segments = segments, .device = DeviceId(1)});
      ASSERT_TRUE(plan.ok()) << plan.error().to_string();
      EXPECT_LE(plan->segments.size(), static_cast<size_t>(segments));
      if (segments <= 2) {
        EXPECT_EQ(plan->segments.size(), static_cast<size_t>(segments));
      }
      for (const Segment& s : plan->segments) EXPECT_EQ(s.device, DeviceId(1));
      const auto timeline = evaluate(problem, *plan);
      ASSERT_TRUE(timeline.ok());
      EXPECT_TRUE(check(problem, *plan, *timeline).ok());
    }
  }
  EXPECT_FALSE(cold_plan(test::random_problem({.ops = 3}), {.segments = -1, .device = {}}).ok());
  // Without a requested number, small models stay whole.
  const std::pair<int64_t, size_t> cases[] = {{1000, 1}, {int64_t{100} << 20, 4}};
  for (const auto& [bytes, segments] : cases) {
    const auto plan = cold_plan(test::random_problem({.ops = 25, .devices = 3, .param_bytes = bytes}));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->segments.size(), segments);
  }
}

// Per-segment times of a start without overlap, given these times of the ops.
ColdSample sample_of(const Plan& plan, const ColdCosts& costs) {
  ColdSample sample{&plan, {}, {}};
  for (const Segment& segment : plan.segments) {
    sample.compile_us.push_back(costs.segment_us);
    sample.run_us.push_back(0);
    for (const OpId op : segment.ops) {
      sample.compile_us.back() += costs.compile_us[op.index()];
      sample.run_us.back() += costs.run_us[op.index()];
    }
  }
  return sample;
}

double first_output(const Plan& plan, const ColdCosts& costs, const ColdMachine& machine, int threads) {
  const ColdSample sample = sample_of(plan, costs);
  std::vector<ColdTask> tasks;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    ColdTask task;
    task.compile_us = sample.compile_us[s];
    task.run_us = sample.run_us[s];
    task.threads = threads;
    if (s > 0) task.after.push_back(static_cast<int32_t>(s) - 1);
    tasks.push_back(task);
  }
  return finish(predict_cold_start(tasks, machine).value());
}

ColdCosts random_costs(Random& random, size_t ops, double segment_us) {
  ColdCosts costs;
  costs.segment_us = segment_us;
  for (size_t i = 0; i < ops; ++i) {
    costs.compile_us.push_back(random.uniform(100, 10'000));
    costs.run_us.push_back(random.uniform(10, 2'000));
  }
  return costs;
}

TEST(ColdPlan, MeasuredCostsAreThoseOfTheSamplesSegments) {
  const Problem problem = test::random_problem({.ops = 30, .devices = 2, .edge_probability = 0.2, .seed = 5});
  Random random(3);
  const ColdCosts costs = random_costs(random, 30, 700);
  const auto whole = cold_plan(problem, {.segments = 1, .device = DeviceId(0)});
  const auto parts = cold_plan(problem, {.segments = 4, .device = DeviceId(0)});
  ASSERT_TRUE(whole.ok() && parts.ok());
  ASSERT_EQ(parts->segments.size(), 4U);
  const auto fitted = fit_cold_costs(problem, sample_of(*whole, costs), sample_of(*parts, costs));
  ASSERT_TRUE(fitted.ok()) << fitted.error().to_string();
  EXPECT_NEAR(fitted->segment_us, 700, 1e-6);
  const ColdSample expected = sample_of(*parts, costs), actual = sample_of(*parts, *fitted);
  for (size_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(actual.compile_us[s], expected.compile_us[s], 1e-6);
    EXPECT_NEAR(actual.run_us[s], expected.run_us[s], 1e-6);
  }
  // If the parts together took no longer than the whole, segments cost nothing (not less).
  ColdSample quick = sample_of(*parts, costs);
  for (double& us : quick.compile_us) us /= 2;
  EXPECT_EQ(fit_cold_costs(problem, sample_of(*whole, costs), quick)->segment_us, 0);
  quick.run_us.pop_back();
  EXPECT_FALSE(fit_cold_costs(problem, sample_of(*whole, costs), quick).ok());
}

// Compared with every cut into at most three segments; a further segment must gain 1 %.
TEST(ColdPlan, WithCostsNoCutIntoFewSegmentsIsMuchEarlier) {
  Random random(11);
  int cut = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem =
        test::random_problem({.ops = 14, .devices = 1, .edge_probability = 0.2, .seed = seed});
    const ColdCosts costs = random_costs(random, 14, random.uniform(0, 20'000));
    const ColdMachine machine{.cores = 2, .load_workers = 2};
    const auto plan =
        cold_plan(problem, {.segments = 3, .device = DeviceId(0), .costs = &costs, .machine = machine});
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    cut += plan->segments.size() > 1 ? 1 : 0;
    const int threads = std::max<int>(1, static_cast<int>(problem.cluster->device(DeviceId(0)).cores.size()));
    const double found = first_output(*plan, costs, machine, threads);
    const double bound = cold_cut_bound(problem, costs, machine, threads);
    EXPECT_GT(bound, found / 3);
    const auto order = problem.graph->topological_order();
    for (size_t a = 0; a < order.size(); ++a) {
      for (size_t b = a; b < order.size(); ++b) {
        Plan other;
        for (size_t i = 0; i < order.size(); ++i) {
          if (i == 0 || (i == a && a > 0) || (i == b && b > a)) other.segments.emplace_back();
          other.segments.back().ops.push_back(order[i]);
        }
        EXPECT_LE(found, first_output(other, costs, machine, threads) * 1.011)
            << seed << ' ' << a << ' ' << b;
      }
    }
  }
  EXPECT_GT(cut, 5);
}

TEST(ColdPlan, OneOpThatIsMostOfTheWorkStandsAlone) {
  const Problem problem = test::random_problem({.ops = 9, .devices = 1, .edge_probability = 0.3, .seed = 2});
  ColdCosts costs;
  costs.compile_us.assign(9, 1000);
  costs.run_us.assign(9, 1);
  const OpId heavy = problem.graph->topological_order()[4];
  costs.compile_us[heavy.index()] = 8000;
  const auto plan = cold_plan(
      problem,
      {.segments = 0, .device = DeviceId(0), .costs = &costs, .machine = {.cores = 2, .load_workers = 2}});
  ASSERT_TRUE(plan.ok());
  // The op takes 8 of 16 ms: one worker compiles it alone, the other one all the rest.
  for (const Segment& s : plan->segments) {
    if (std::binary_search(s.ops.begin(), s.ops.end(), heavy)) {
      EXPECT_EQ(s.ops.size(), 1U);
    }
  }
  costs.run_us.pop_back();
  EXPECT_FALSE(cold_plan(problem, {.segments = 0, .device = {}, .costs = &costs, .machine = {}}).ok());
}

}  // namespace
}  // namespace heddle
