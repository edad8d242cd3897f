// Parameters that accelerators load and drop: their layout, and that none is overwritten while in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "executor/plan_buffers.h"
#include "heddle/base/random.h"
#include "support.h"

namespace heddle {
namespace {

using test::AcceleratedBackend;

// Each load takes longer than a run, so a run ends before the load after the next.
Problem dropping_problem(uint64_t seed, int devices) {
  Problem problem = test::random_problem({.ops = 16,
                                          .devices = devices,
                                          .max_us = 5,
                                          .transfer_us = 40,
                                          .param_bytes = 100,
                                          .host_hub = true,
                                          .objective = Objective::kColdLatency,
                                          .seed = seed});
  problem.execution.parameter_drops = true;
  return problem;
}

TEST(ParameterLayout, PlacesAreTakenOnlyAfterTheRunThatUsedThem) {
  bool shared = false;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Problem problem = dropping_problem(seed, 2);
    Plan plan = test::random_plan(problem, seed, 0.2);
    Random random(seed);
    std::vector<ParameterNeed> needs;
    for (Segment& segment : plan.segments) {
      segment.drops_params = random.chance(0.7);
      needs.push_back({segment.device.value + 1, static_cast<int64_t>(random.below(5000))});
    }
    const Timeline timeline = evaluate(problem, plan).value();
    const ParameterLayout layout = lay_out_parameters(plan, timeline, needs, 3);
    const size_t n = plan.segments.size();
    std::vector<size_t> load(n, 0), run(n, 0);
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const size_t s = plan.steps[i].segment.index();
      if (plan.steps[i].kind == StepKind::kLoad) load[s] = i;
      if (plan.steps[i].kind == StepKind::kRun) run[s] = i;
    }
    // follows[a][b]: b's load waits for a's run, directly or through others.
    std::vector<std::vector<bool>> follows(n, std::vector<bool>(n, false));
    for (const auto& [a, b] : layout.reuses) {
      follows[static_cast<size_t>(a)][static_cast<size_t>(b)] = true;
      EXPECT_LT(run[static_cast<size_t>(a)], load[static_cast<size_t>(b)]);
      EXPECT_LE(timeline.finish_us[run[static_cast<size_t>(a)]],
                timeline.start_us[load[static_cast<size_t>(b)]] + 1e-3);  // the plan waits for nothing else
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t a = 0; a < n; ++a) {
        for (size_t b = 0; b < n; ++b) {
          if (follows[a][k] && follows[k][b]) follows[a][b] = true;
        }
      }
    }
    std::vector<int64_t> sum(3, 0);
    for (size_t a = 0; a < n; ++a) {
      const auto memory = static_cast<size_t>(needs[a].memory);
      EXPECT_EQ(layout.offset[a] >= 0, needs[a].bytes > 0);
      if (needs[a].bytes == 0) continue;
      EXPECT_EQ(layout.offset[a] % kDeviceAlignment, 0);
      EXPECT_LE(layout.offset[a] + needs[a].bytes, layout.bytes[memory]);
      sum[memory] += device_aligned(needs[a].bytes);
      for (size_t b = 0; b < n; ++b) {
        if (b == a || needs[b].memory != needs[a].memory || needs[b].bytes == 0) continue;
        if (layout.offset[a] >= layout.offset[b] + needs[b].bytes) continue;
        if (layout.offset[b] >= layout.offset[a] + needs[a].bytes) continue;
        EXPECT_TRUE(plan.segments[a].drops_params && plan.segments[b].drops_params);
        EXPECT_TRUE(follows[a][b] || follows[b][a]) << "seed " << seed;
      }
    }
    for (size_t m = 0; m < 3; ++m) {
      EXPECT_LE(layout.bytes[m], sum[m]);
      shared |= layout.bytes[m] < sum[m];
    }
  }
  EXPECT_TRUE(shared);
}

int64_t parameter_bytes(const Executor& executor) {
  const auto pools = executor.memory();
  return std::accumulate(pools.begin(), pools.end(), int64_t{0},
                         [](int64_t sum, const PoolUse& use) { return sum + use.param_bytes; });
}

// The backend's segments fail if their parameters are not at the given address.
TEST(ParameterLayout, DroppedParametersComeAgainForEachRequestInLessMemory) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Problem problem = dropping_problem(seed, 2);
    Plan plan = test::random_plan(problem, seed, 0);
    int64_t bytes[2] = {0, 0};
    for (const bool drops : {false, true}) {
      for (Segment& segment : plan.segments) segment.drops_params = drops;
      AcceleratedBackend backend;
      const auto executor = Executor::create(problem, plan, nullptr, {.open = backend.opener()});
      ASSERT_TRUE(executor.ok()) << executor.error().to_string();
      bytes[drops ? 1 : 0] = parameter_bytes(**executor);
      for (uint64_t request = 1; request <= 5; ++request) {
        test::write_input((*executor)->inputs(0), request);
        const auto timing = (*executor)->run();
        ASSERT_TRUE(timing.ok()) << timing.error().to_string();
        EXPECT_EQ(test::read_outputs((*executor)->outputs(0)),
                  test::expected_outputs(problem, plan, 0, request));
      }
    }
    EXPECT_LT(bytes[1], bytes[0]) << "seed " << seed;
  }
}

TEST(ParameterLayout, SeveralRequestsAtOnceAreRefused) {
  const Problem problem = dropping_problem(1, 2);
  Plan plan = test::random_plan(problem, 1, 0);
  plan.segments.front().drops_params = true;
  AcceleratedBackend backend;
  const auto executor = Executor::create(problem, plan, nullptr, {.in_flight = 2, .open = backend.opener()});
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code(), Code::kUnsupported);
  EXPECT_THAT(executor.error().message(), testing::HasSubstr("--in-flight"));
}

}  // namespace
}  // namespace heddle
