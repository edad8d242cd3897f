// The prediction of cold starts, on cases that can be done by hand, and where to cut for them.
#include "heddle/runtime/cold_schedule.h"

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
  // From 10 on, three threads want two cores: both last 10 * 3 / 2.
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
  // Not asked for a number: small models stay whole.
  const std::pair<int64_t, size_t> cases[] = {{1000, 1}, {int64_t{100} << 20, 4}};
  for (const auto& [bytes, segments] : cases) {
    const auto plan = cold_plan(test::random_problem({.ops = 25, .devices = 3, .param_bytes = bytes}));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->segments.size(), segments);
  }
}

}  // namespace
}  // namespace heddle
