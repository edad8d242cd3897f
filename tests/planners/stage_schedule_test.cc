// Timing of stages: by hand, against a fixed point of the definition, and the errors of malformed input.
#include "hios/stage_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stage_support.h"

namespace heddle::test {
namespace {

// 0 -> 1, 0 -> 2, {1, 2} -> 3 on two equal devices.
StageInput diamond() {
  StageInput in;
  in.ops = 4;
  in.devices = 2;
  in.us = {2, 2, 4, 4, 6, 6, 2, 2};
  in.utilization = {1, 1, 0.5, 0.5, 0.75, 0.75, 1, 1};
  in.edges = {{0, 1, 3}, {0, 2, 3}, {1, 3, 1}, {2, 3, 1}};
  in.latency_us = {0, 1, 1, 0};
  in.us_per_byte = {0, 1, 1, 0};
  return in;
}

TEST(StageSchedule, AStageTakesSerialAndOverlappedTime) {
  const auto instance = StageInstance(diamond());
  const std::vector<uint32_t> both = {1, 2}, one = {1};
  // 0.5 * 10 + 0.5 * max(2 + 4.5, 6)
  EXPECT_DOUBLE_EQ(instance.stage_us(both, 0), 8.25);
  EXPECT_DOUBLE_EQ(instance.stage_us(one, 0), 4);
  auto in = diamond();
  in.sharing = {{0.5, 0.5, 0.25}, {0.1, 0.1, 0}};
  const auto other = StageInstance(in);
  EXPECT_DOUBLE_EQ(other.stage_us(both, 0), 8.5);
  EXPECT_DOUBLE_EQ(other.stage_us(both, 1), 6);  // never below the longest
}

TEST(StageSchedule, StagesWaitForInputsAndForTheStageBefore) {
  const auto instance = StageInstance(diamond());
  auto timing = time_stages(instance, {{{{0}, {1, 2}, {3}}, {}}});
  ASSERT_TRUE(timing.ok());
  EXPECT_DOUBLE_EQ(timing->makespan_us, 12.25);
  timing = time_stages(instance, {{{{0}, {2}, {3}}, {{1}}}});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->start_us,
            (std::vector<double>{0, 6, 2, 12}));  // op 1 ends at 10, its tensor is there at 12
  EXPECT_DOUBLE_EQ(timing->makespan_us, 14);
}

TEST(StageSchedule, StagesThatWaitForEachOtherAreInfeasible) {
  const auto instance = StageInstance(diamond());
  EXPECT_EQ(time_stages(instance, {{{{0, 1}, {2}, {3}}, {}}}).error().code(), Code::kInfeasible);
  EXPECT_EQ(time_stages(instance, {{{{3}, {0}, {1, 2}}, {}}}).error().code(), Code::kInfeasible);
}

TEST(StageSchedule, DevicesWithoutAWayAreRefusedOnlyWhenUsed) {
  auto in = diamond();
  in.latency_us[1] = kNoTime;
  const auto instance = StageInstance(in);
  EXPECT_TRUE(time_stages(instance, {{{{0}, {1, 2}, {3}}, {}}}).ok());
  EXPECT_FALSE(time_stages(instance, {{{{0}, {2}, {3}}, {{1}}}}).ok());
}

TEST(StageSchedule, TimesAreTheLeastFixedPoint) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    RandomStages options;
    options.ops = 1 + random.below(14);
    options.devices = 1 + random.below(4);
    options.width = 1 + random.below(3);
    options.unequal = random.chance(0.5);
    const auto instance = random_stages(random, options);
    const auto schedule = random_schedule(random, instance);
    const auto timing = time_stages(instance, schedule);
    ASSERT_TRUE(timing.ok()) << timing.error().message();
    std::vector<uint32_t> device(options.ops);
    for (uint32_t d = 0; d < options.devices; ++d) {
      for (const Stage& s : schedule.devices[d])
        for (const uint32_t v : s) device[v] = d;
    }
    double makespan = 0;
    for (uint32_t d = 0; d < options.devices; ++d) {
      double free = 0;
      for (const Stage& s : schedule.devices[d]) {
        double start = free;
        for (const uint32_t v : s) {
          for (const auto& in : instance.inputs(v))
            start = std::max(start, timing->end_us[in.op] + instance.transfer_us(in.bytes, device[in.op], d));
        }
        free = start + instance.stage_us(s, d);
        for (const uint32_t v : s) {
          EXPECT_EQ(timing->start_us[v], start);
          EXPECT_EQ(timing->end_us[v], free);
        }
      }
      makespan = std::max(makespan, free);
    }
    EXPECT_EQ(timing->makespan_us, makespan);
  }
}

TEST(StageSchedule, NoSetOfOpsTakesLessThanItsLeastWork) {
  Random random(11);
  for (int round = 0; round < 1000; ++round) {
    RandomStages options;
    options.ops = 1 + random.below(4);
    options.width = 4;
    options.unequal = random.chance(0.5);
    const auto instance = random_stages(random, options);
    for (size_t d = 0; d < 2; ++d) {
      std::vector<uint32_t> ops;
      double work = 0;
      for (uint32_t v = 0; v < options.ops; ++v) {
        ops.push_back(v);
        work += least_work_us(instance, v, d);
      }
      EXPECT_LE(work, instance.stage_us(ops, d) * (1 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace heddle::test
