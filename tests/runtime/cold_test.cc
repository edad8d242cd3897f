// Cold starts without OpenVINO: load workers, the budget and faults. Clean under the thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>

#include "heddle/base/own_cores.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/executor.h"
#include "support.h"

namespace heddle {
namespace {

using test::HashBackend;
using test::random_plan;
using test::random_problem;

ExecutorOptions cold(HashBackend& backend, int workers, int64_t budget = 0) {
  ExecutorOptions options;
  options.open = backend.opener();
  options.cold = ColdOptions{.load_workers = workers, .budget_bytes = budget, .read_model = {}};
  return options;
}

void expect_outputs(const Problem& problem, const Plan& plan, Executor& executor, uint64_t input) {
  test::write_input(executor.inputs(0), input);
  const auto timing = executor.run();
  ASSERT_TRUE(timing.ok()) << timing.error().to_string();
  EXPECT_EQ(test::read_outputs(executor.outputs(0)), test::expected_outputs(problem, plan, 0, input));
}

std::vector<size_t> run_order(const Plan& plan) {
  std::vector<size_t> order;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kRun) order.push_back(step.segment.index());
  }
  return order;
}

int64_t total_bytes(const Problem& problem) {
  int64_t bytes = 0;
  for (size_t op = 0; op < problem.graph->num_ops(); ++op) {
    for (const ParamId p : problem.graph->op(OpId(op)).params) bytes += problem.graph->param(p).bytes;
  }
  return bytes;
}

int64_t segment_bytes(const Problem& problem, const Segment& segment) {
  int64_t bytes = 0;
  for (const OpId op : segment.ops) {
    for (const ParamId p : problem.graph->op(op).params) bytes += problem.graph->param(p).bytes;
  }
  return bytes;
}

int64_t largest_segment(const Problem& problem, const Plan& plan) {
  int64_t most = 0;
  for (const Segment& s : plan.segments) most = std::max(most, segment_bytes(problem, s));
  return most;
}

TEST(Cold, OutputsAreTheSequentialOnesAndSegmentsAreCompiledOnce) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = random_problem({.ops = 25, .devices = 4, .edge_probability = 0.2, .seed = seed});
    const Plan plan = random_plan(problem, seed, 0.4);
    HashBackend backend;
    const auto executor = test::make_executor(problem, plan, cold(backend, 1 + static_cast<int>(seed % 4)));
    ASSERT_EQ(backend.compiles, 0) << "create() compiles nothing";
    for (uint64_t request = 1; request <= 5; ++request) {
      expect_outputs(problem, plan, *executor, request * 31);
      EXPECT_EQ(backend.compiles, static_cast<int>(plan.segments.size()));
    }
    for (const auto& loading : executor->loadings()) EXPECT_EQ(loading.begin_us, -1) << "it was resident";
  }
}

TEST(Cold, ASegmentWaitsForItsLoadingAndLoadingsAreTimedWithinTheRequest) {
  const Problem problem = random_problem({.ops = 12, .devices = 2, .seed = 3});
  const Plan plan = random_plan(problem, 3, 0.5);
  HashBackend backend;
  const auto executor = test::make_executor(problem, plan, cold(backend, 2));
  const auto timing = executor->run();
  ASSERT_TRUE(timing.ok());
  const auto loadings = executor->loadings();
  ASSERT_EQ(loadings.size(), plan.segments.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != StepKind::kRun) continue;
    const auto& loading = loadings[plan.steps[i].segment.index()];
    EXPECT_GE(loading.begin_us, 0);
    EXPECT_LE(loading.begin_us, loading.ready_us);
    EXPECT_LE(loading.ready_us, timing->steps[i].start_us + 1e-3);
    EXPECT_LE(loading.load_us + loading.compile_us, loading.ready_us - loading.begin_us + 1e-3);
    EXPECT_LE(timing->steps[i].finish_us, timing->latency_us + 1e-3);
  }
}

TEST(Cold, EarlierSegmentsRunWhileLaterOnesAreStillCompiled) {
  const Problem problem = random_problem({.ops = 8, .devices = 1, .seed = 5});
  const Plan plan = random_plan(problem, 5, 0.0);
  const auto order = run_order(plan);
  ASSERT_GE(order.size(), 3U);
  const std::string first = plan.segments[order.front()].name, last = plan.segments[order.back()].name;
  std::mutex mutex;
  std::condition_variable changed;
  bool ran = false, saw = false;
  HashBackend backend;
  backend.hook = [&](const std::string& name) {
    if (name == first) {
      const std::lock_guard lock(mutex);
      ran = true;
      changed.notify_all();
    }
    return Status();
  };
  backend.compile_hook = [&](const std::string& name) {
    if (name == last) {
      std::unique_lock lock(mutex);
      saw = changed.wait_for(lock, std::chrono::seconds(60), [&] { return ran; });
    }
    return Status();
  };
  for (const int workers : {1, 2}) {
    ran = saw = false;
    const auto executor = test::make_executor(problem, plan, cold(backend, workers));
    expect_outputs(problem, plan, *executor, 9);
    EXPECT_TRUE(saw) << "with " << workers << " load workers the first segment waited for the last";
  }
}

// Two workers, on at least two cores, hold one segment each until both have one.
TEST(Cold, LoadWorkersCompileOnCoresOfTheirOwn) {
  const auto all = own_cores();
  if (all.size() < 2) GTEST_SKIP() << "this process may use one core only";
  const Problem problem = random_problem({.ops = 8, .devices = 1, .seed = 5});
  const Plan plan = random_plan(problem, 5, 0.0);
  ASSERT_GE(plan.segments.size(), 2U);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<int>> seen;
  HashBackend backend;
  backend.compile_hook = [&](const std::string&) {
    std::unique_lock lock(mutex);
    seen.push_back(own_cores());
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return seen.size() >= 2; });
    return Status();
  };
  const int workers = std::min(static_cast<int>(all.size()), 64);
  expect_outputs(problem, plan, *test::make_executor(problem, plan, cold(backend, workers)), 9);
  ASSERT_GE(seen.size(), 2U);
  std::set<int> used;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LT(seen[i].size(), all.size());
    for (const int core : seen[i]) EXPECT_TRUE(used.insert(core).second) << "core " << core << " is shared";
  }
  EXPECT_EQ(own_cores(), all) << "the caller's are as before";
  if (all.size() >= 64) return;  // the number of workers is limited to 64
  seen.clear();
  expect_outputs(problem, plan,
                 *test::make_executor(problem, plan, cold(backend, static_cast<int>(all.size()) + 1)), 9);
  for (const auto& cores : seen) EXPECT_EQ(cores, all) << "more workers than cores: none has its own";
}

TEST(CoreGroups, AThreadOnOneIsBoundFromItsStartAndNobodyElse) {
  const auto all = own_cores();
  if (all.size() < 2) GTEST_SKIP() << "this process may use one core only";
  for (int i = 0; i < 200; ++i) {
    const auto wanted = core_group(other_half(), 2);
    std::vector<int> seen;
    start_thread_on(wanted, [&] { seen = own_cores(); }).join();
    EXPECT_EQ(seen, wanted);
    start_thread_on(wanted, [] {}).join();
    ASSERT_EQ(own_cores(), all) << "a thread that ends at once binds its maker";
  }
}

TEST(CoreGroups, AreAllCoresEachInOneGroupAndEvenInSize) {
  const auto all = own_cores();
  const int count = static_cast<int>(all.size());
  for (int groups = 1; groups <= count; ++groups) {
    std::vector<int> together;
    for (int i = 0; i < groups; ++i) {
      const auto group = core_group(i, groups);
      EXPECT_GE(static_cast<int>(group.size()), count / groups);
      EXPECT_LE(static_cast<int>(group.size()), (count + groups - 1) / groups);
      together.insert(together.end(), group.begin(), group.end());
    }
    EXPECT_EQ(together, all);
  }
  EXPECT_TRUE(core_group(0, count + 1).empty());
}

TEST(Cold, WithoutOverlapASegmentIsCompiledWhenTheOneBeforeItRan) {
  const Problem problem = random_problem({.ops = 12, .devices = 3, .seed = 6});
  const Plan plan = random_plan(problem, 6, 0.2);
  HashBackend backend;
  std::atomic<int> ran_too_few{0};
  backend.compile_hook = [&](const std::string&) {
    if (backend.runs < backend.compiles - 1) ++ran_too_few;
    return Status();
  };
  auto options = cold(backend, 3);
  options.cold->overlap = false;
  const auto executor = test::make_executor(problem, plan, options);
  expect_outputs(problem, plan, *executor, 4);
  EXPECT_EQ(ran_too_few, 0);
}

TEST(Cold, OneLoadWorkerCompilesInThePlansOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Problem problem = random_problem({.ops = 15, .devices = 3, .seed = seed});
    const Plan plan = random_plan(problem, seed, 0.3);
    std::vector<std::string> compiled, expected;
    HashBackend backend;
    backend.compile_hook = [&](const std::string& name) {
      compiled.push_back(name);
      return Status();
    };
    const auto executor = test::make_executor(problem, plan, cold(backend, 1));
    expect_outputs(problem, plan, *executor, seed);
    for (const size_t s : run_order(plan)) expected.push_back(plan.segments[s].name);
    EXPECT_EQ(compiled, expected);
  }
}

TEST(ColdBudget, NeverHoldsMoreAndReloadsOnlyWhatDidNotStay) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const Problem problem =
        random_problem({.ops = 20, .devices = 3, .edge_probability = 0.2, .param_bytes = 1000, .seed = seed});
    const Plan plan = random_plan(problem, seed, 0.3);
    const int64_t total = total_bytes(problem), least = largest_segment(problem, plan);
    for (const double part : {0.0, 0.3, 0.7, 1.0}) {
      const int64_t budget = least + static_cast<int64_t>(part * static_cast<double>(total - least));
      HashBackend backend;
      const auto executor =
          test::make_executor(problem, plan, cold(backend, 1 + static_cast<int>(seed % 3), budget));
      expect_outputs(problem, plan, *executor, seed);
      EXPECT_EQ(backend.compiles, static_cast<int>(plan.segments.size()));
      for (uint64_t request = 2; request <= 4; ++request) {
        const int before = backend.compiles;
        expect_outputs(problem, plan, *executor, seed * request);
        int64_t resident = 0;
        int reloaded = 0;
        const auto loadings = executor->loadings();
        bool one_was_reloaded = false;
        for (const size_t s : run_order(plan)) {
          const bool again = loadings[s].begin_us >= 0;
          reloaded += again ? 1 : 0;
          resident += again ? 0 : segment_bytes(problem, plan.segments[s]);
          EXPECT_TRUE(again || !one_was_reloaded) << "those that run first stay";
          one_was_reloaded |= again;
        }
        EXPECT_EQ(backend.compiles - before, reloaded);
        EXPECT_LE(resident, budget);
        EXPECT_EQ(reloaded == 0, budget == total);
      }
      EXPECT_LE(executor->peak_resident_bytes(), budget);
      EXPECT_LE(executor->peak_resident_bytes(), total);
    }
  }
}

TEST(ColdBudget, ASegmentThatNeverFitsIsAnErrorThatNamesIt) {
  const Problem problem = random_problem({.ops = 10, .devices = 2, .param_bytes = 4096, .seed = 2});
  const Plan plan = random_plan(problem, 2, 0.4);
  HashBackend backend;
  const auto executor =
      Executor::create(problem, plan, nullptr, cold(backend, 2, largest_segment(problem, plan) - 1));
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code(), Code::kInfeasible);
  const auto text = executor.error().to_string();
  EXPECT_NE(text.find("segment '"), std::string::npos) << text;
  EXPECT_NE(text.find("budget"), std::string::npos) << text;
  EXPECT_EQ(backend.compiles, 0);
}

TEST(ColdFaults, EachIsOneErrorThatNamesTheSegmentReleasesEverythingAndIsOver) {
  for (const test::SegmentFault& fault : test::segment_faults()) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const Problem problem = random_problem(
          {.ops = 18, .devices = 3, .edge_probability = 0.2, .param_bytes = 100, .seed = seed});
      const Plan plan = random_plan(problem, seed, 0.3);
      const auto order = run_order(plan);
      const std::string victim = plan.segments[order[order.size() / 2]].name;
      const int64_t budget = seed % 2 == 0 ? total_bytes(problem) * 2 / 3 : 0;
      if (budget > 0 && budget < largest_segment(problem, plan)) continue;
      bool armed = true;
      HashBackend backend;
      const auto hook = [&](const std::string& name) {
        return armed && name == victim ? fault.happen() : Status();
      };
      (fault.compiling ? backend.compile_hook : backend.hook) = hook;
      const auto executor =
          test::make_executor(problem, plan, cold(backend, 1 + static_cast<int>(seed % 3), budget));
      const auto timing = executor->run();
      ASSERT_FALSE(timing.ok()) << fault.what;
      const auto text = timing.error().to_string();
      EXPECT_NE(text.find(fault.message), std::string::npos) << fault.what << ": " << text;
      EXPECT_NE(text.find("segment '" + victim + "' on device '"), std::string::npos) << text;
      EXPECT_EQ(backend.live, 0) << fault.what << " leaves compiled segments behind";
      // Without the fault, the next request loads everything again.
      armed = false;
      expect_outputs(problem, plan, *executor, seed);
    }
  }
}

TEST(ColdFaults, ARequestThatIsCancelledWhileSegmentsLoadEndsAndReleasesThem) {
  const Problem problem = random_problem({.ops = 20, .devices = 2, .param_bytes = 100, .seed = 4});
  const Plan plan = random_plan(problem, 4, 0.2);
  for (const int64_t budget : {int64_t{0}, largest_segment(problem, plan)}) {
    const CancelToken token;
    HashBackend backend;
    int count = 0;
    backend.compile_hook = [&](const std::string&) {
      if (++count == 3) token.cancel();
      return Status();
    };
    // With one worker, the hook never runs twice at once.
    const auto executor = test::make_executor(problem, plan, cold(backend, 1, budget));
    const auto timing = executor->run(Deadline::never(token));
    // The cancellation may come after all segments are loaded.
    if (!timing.ok()) {
      EXPECT_EQ(timing.error().code(), Code::kCancelled);
      EXPECT_EQ(backend.live, 0);
    }
    backend.compile_hook = {};
    expect_outputs(problem, plan, *executor, 5);
  }
}

TEST(ColdFaults, ADeadlineThatPassedStopsBeforeAnythingIsCompiled) {
  const Problem problem = random_problem({.ops = 6, .devices = 2, .seed = 4});
  const Plan plan = random_plan(problem, 4, 0.2);
  HashBackend backend;
  const auto executor = test::make_executor(problem, plan, cold(backend, 2));
  const auto timing = executor->run(Deadline::after_seconds(-1));
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.error().code(), Code::kCancelled);
  EXPECT_EQ(backend.compiles, 0);
}

TEST(Cold, OptionsThatMakeNoSenseAreErrors) {
  const Problem problem = random_problem({.ops = 6, .devices = 2, .seed = 4});
  const Plan plan = random_plan(problem, 4, 0.2);
  HashBackend backend;
  auto two = cold(backend, 2);
  two.in_flight = 2;
  EXPECT_EQ(Executor::create(problem, plan, nullptr, two).error().code(), Code::kUnsupported);
  for (const int workers : {-1, 0, 65}) {
    EXPECT_EQ(Executor::create(problem, plan, nullptr, cold(backend, workers)).error().code(),
              Code::kInvalidInput);
  }
  EXPECT_EQ(Executor::create(problem, plan, nullptr, cold(backend, 1, -5)).error().code(),
            Code::kInvalidInput);
}

TEST(Cold, EmulatedDevicesTakeThePlansTimes) {
  const Problem problem = random_problem({.ops = 10, .devices = 2, .max_us = 100, .seed = 8});
  const Plan plan = random_plan(problem, 8, 0.3);
  ExecutorOptions options;
  options.cold = ColdOptions{};
  const auto executor = test::make_executor(problem, plan, options);
  const auto timing = executor->run();
  ASSERT_TRUE(timing.ok());
  for (const auto& loading : executor->loadings()) EXPECT_EQ(loading.begin_us, -1);
}

}  // namespace
}  // namespace heddle
