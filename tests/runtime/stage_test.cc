// Stages in the executor, and the fit of stage models.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/segment_measurer.h"
#include "support.h"

namespace heddle {
namespace {

using test::HashBackend;

// Every second pair of independent neighbours of one device becomes a stage.
Assignment with_stages(const Problem& problem, const Plan& plan) {
  Assignment a = assignment_of(problem, plan);
  a.segment.clear();
  a.stage.assign(a.order.size(), -1);
  for (size_t i = 0; i + 1 < a.order.size(); ++i) {
    for (size_t j = i + 1; j < a.order.size() && a.stage[a.order[i].index()] < 0; ++j) {
      if (a.device[a.order[i].index()] != a.device[a.order[j].index()]) continue;
      if (a.stage[a.order[j].index()] >= 0) continue;
      Assignment next = a;
      next.stage[a.order[i].index()] = next.stage[a.order[j].index()] = static_cast<int>(i);
      if (build_plan(problem, next).ok()) a = std::move(next);
    }
  }
  return a;
}

int stages_of(const Plan& plan) {
  int members = 0;
  for (const Segment& s : plan.segments) members += s.stage >= 0;
  return members / 2;
}

Problem staged(const test::RandomProblemOptions& options) {
  Problem problem = test::random_problem(options);
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d)
    costs->set_stage_model(DeviceId(d), {.serial = 0.6, .overlap = 0.2, .launch_us = 3});
  problem.costs = costs;
  problem.execution.stage_width = 2;
  return problem;
}

TEST(StageExecution, EmulatedMembersStartTogetherAndTakeTheStagesTime) {
  int stages = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Problem problem = staged(
        {.ops = 14, .devices = 2, .edge_probability = 0.15, .max_us = 400, .transfer_us = 40, .seed = seed});
    const Plan plan = *build_plan(problem, with_stages(problem, test::random_plan(problem, seed, 0)));
    stages += stages_of(plan);
    const Timeline timeline = *evaluate(problem, plan);
    ASSERT_TRUE(check(problem, plan, timeline).ok());
    for (const int in_flight : {1, 3}) {
      auto executor = Executor::create(problem, plan, nullptr, {.in_flight = in_flight});
      ASSERT_TRUE(executor.ok()) << executor.error().to_string();
      const auto timing = (*executor)->run();
      ASSERT_TRUE(timing.ok());
      // Pipelined resources serve ready tasks in any order.
      const bool ordered = in_flight == 1;
      if (ordered) {
        EXPECT_GE(timing->latency_us, timeline.makespan_us - 0.01 * static_cast<double>(plan.steps.size()));
      }
      for (size_t i = 0; i < plan.steps.size(); ++i) {
        EXPECT_GE(timing->steps[i].finish_us - timing->steps[i].start_us,
                  timeline.finish_us[i] - timeline.start_us[i] - 0.01);
        if (ordered) {
          EXPECT_GE(timing->steps[i].start_us, timeline.start_us[i] - 0.01 * static_cast<double>(i + 1));
        }
      }
    }
  }
  EXPECT_GT(stages, 5);
}

TEST(StageExecution, OutputsEqualTheSequentialOnesOnThreads) {
  for (const bool cores : {false, true}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const Problem problem =
          staged({.ops = 16, .devices = 3, .edge_probability = 0.15, .cores = cores, .seed = seed});
      const Plan plan = *build_plan(problem, with_stages(problem, test::random_plan(problem, seed, 0)));
      ASSERT_TRUE(check(problem, plan, *evaluate(problem, plan)).ok());
      HashBackend backend;
      auto executor = Executor::create(problem, plan, nullptr, {.in_flight = 1, .open = backend.opener()});
      ASSERT_TRUE(executor.ok()) << executor.error().to_string();
      for (uint64_t input = 1; input <= 3; ++input) {
        test::write_input((*executor)->inputs(0), input);
        ASSERT_TRUE((*executor)->run().ok());
        EXPECT_EQ(test::read_outputs((*executor)->outputs(0)),
                  test::expected_outputs(problem, plan, 0, input));
      }
    }
  }
}

// Each member computes on a stream of its own.
TEST(StageExecution, AFaultOfAnyMemberOnAnAcceleratorEndsTheRun) {
  const Problem problem = staged({.ops = 12, .devices = 2, .edge_probability = 0.15, .seed = 4});
  const Plan plan = *build_plan(problem, with_stages(problem, test::random_plan(problem, 4, 0)));
  ASSERT_GT(stages_of(plan), 0);
  for (const Segment& broken : plan.segments) {
    test::AcceleratedBackend backend;
    std::atomic<bool> fault{true};
    backend.hash.hook = [&](const std::string& segment) -> Status {
      if (fault && segment == broken.name) return Error(Code::kInternal, "injected");
      return {};
    };
    auto executor = Executor::create(problem, plan, nullptr, {.in_flight = 1, .open = backend.opener()});
    ASSERT_TRUE(executor.ok()) << executor.error().to_string();
    test::write_input((*executor)->inputs(0), 1);
    EXPECT_FALSE((*executor)->run().ok()) << broken.name;
    fault = false;
    for (uint64_t input = 2; input <= 3; ++input) {
      test::write_input((*executor)->inputs(0), input);
      ASSERT_TRUE((*executor)->run().ok()) << broken.name;
      EXPECT_EQ(test::read_outputs((*executor)->outputs(0)), test::expected_outputs(problem, plan, 0, input));
    }
  }
}

TEST(StageExecution, MembersRunAtOnce) {
  // Two independent ops on one device in one stage: each waits until the other has started.
  Problem problem = staged({.ops = 2, .devices = 1, .edge_probability = 0, .seed = 3});
  Assignment a;
  a.device.assign(2, DeviceId(0));
  a.order = {OpId(0), OpId(1)};
  a.stage = {0, 0};
  const Plan plan = *build_plan(problem, a);
  HashBackend backend;
  std::atomic<int> started{0};
  backend.hook = [&](const std::string&) -> Status {
    started.fetch_add(1);
    for (int i = 0; i < 100'000 && started.load() < 2; ++i) std::this_thread::yield();
    return started.load() >= 2 ? Status() : Status(Error(Code::kInternal, "the other member did not start"));
  };
  auto executor = Executor::create(problem, plan, nullptr, {.open = backend.opener()});
  ASSERT_TRUE(executor.ok());
  const auto timing = (*executor)->run();
  EXPECT_TRUE(timing.ok()) << timing.error().to_string();
}

TEST(StageFit, FindsTheModelThatMadeTheSamples) {
  const StageModel truth{.serial = 0.3, .overlap = 0.8, .launch_us = 7};
  std::vector<StageSample> samples;
  for (int i = 1; i <= 12; ++i) {
    StageSample s;
    for (int k = 0; k < 2 + i % 2; ++k) {
      const double us = 100.0 + 37.0 * ((i * 7 + k * 13) % 11);
      s.items.push_back({us, us * (0.5 + 0.04 * ((i + 3 * k) % 11))});
    }
    s.us = truth.us(s.items);
    samples.push_back(std::move(s));
  }
  const StageFit fit = fit_stage_model(samples);
  EXPECT_NEAR(fit.model.serial, 0.3, 1e-6);
  EXPECT_NEAR(fit.model.overlap, 0.8, 1e-6);
  EXPECT_NEAR(fit.model.launch_us, 7, 1e-3);
  EXPECT_LT(fit.largest_error, 1e-6);
  EXPECT_EQ(fit.samples, 12);
}

TEST(StageFit, StaysSensibleOnLittleOrStrangeData) {
  EXPECT_EQ(fit_stage_model({}).model, StageModel());
  const std::vector<StageSample> one = {{{{100, 100}, {100, 100}}, 120}};
  const StageFit fit = fit_stage_model(one);
  EXPECT_NEAR(fit.model.us(one[0].items), 120, 1e-6);
  const std::vector<StageSample> useless = {{{{100, 100}}, 90}, {{{100, 100}, {50, 50}}, 0}};
  EXPECT_EQ(fit_stage_model(useless).samples, 0);
}

}  // namespace
}  // namespace heddle
