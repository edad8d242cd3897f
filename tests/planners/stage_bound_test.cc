// Bounds on stages: never above the optimum of tiny instances nor above anything found, and what they must
// see on cases made by hand.
#include "hios/stage_bound.h"

#include <gtest/gtest.h>

#include "hios/hios.h"
#include "stage_support.h"

namespace heddle::test {
namespace {

TEST(StageBound, IsNeverAboveTheOptimum) {
  Random random(21);
  int exact = 0;
  for (int round = 0; round < 3'000; ++round) {
    RandomStages o;
    o.ops = 1 + random.below(5);
    o.devices = 1 + random.below(3);
    o.width = 1 + random.below(3);
    o.unequal = random.chance(0.4);
    o.whole = random.chance(0.3);
    o.density = random.uniform(0.1, 0.9);
    const auto instance = random_stages(random, o);
    const double optimum = brute_force_stages(instance);
    const StageBound bound = bound_of(instance, random.chance(0.5) ? kNoTime : optimum);
    ASSERT_LE(bound.us, optimum * (1 + 1e-12)) << bound.reason << " in round " << round;
    ASSERT_GT(bound.us, 0.2 * optimum - 1e-9);
    exact += bound.us >= optimum * (1 - 1e-6);
  }
  EXPECT_GT(exact, 1'500);
}

TEST(StageBound, IsNeverAboveWhatIsFoundOnLargerGraphs) {
  Random random(22);
  for (int round = 0; round < 150; ++round) {
    RandomStages o;
    o.ops = 10 + random.below(40);
    o.devices = 1 + random.below(6);
    o.width = 1 + random.below(3);
    o.unequal = random.chance(0.3);
    o.density = random.uniform(0.02, 0.3);
    const auto instance = random_stages(random, o);
    const auto schedule = construct_stages(instance, {});
    ASSERT_TRUE(schedule.ok());
    const double found = time_stages(instance, *schedule)->makespan_us;
    EXPECT_LE(bound_of(instance, found).us, found * (1 + 1e-12)) << round;
  }
}

// A join of four ops of 10 us whose transfers take 15 us: an input either waits its turn on the device of the
// last op or comes later by a transfer; all four in turns take 40, one that is transferred is there at 25.
TEST(StageBound, SeesThatInputsTakeTurnsOrAreTransferred) {
  StageInput in;
  in.ops = 5;
  in.devices = 4;
  in.width = 1;
  in.us.assign(20, 10);
  for (uint32_t v = 0; v < 4; ++v) in.edges.push_back({v, 4, 15});
  in.latency_us.assign(16, 0);
  in.us_per_byte.assign(16, 1);
  const auto instance = StageInstance(in);
  EXPECT_NEAR(bound_of(instance, kNoTime).us, 35, 1e-6);
}

// With one op in front and one behind, other devices begin later and end earlier than the first and the last.
TEST(StageBound, SeesThatOtherDevicesBeginLateAndEndEarly) {
  StageInput in;
  in.ops = 18;
  in.devices = 2;
  in.width = 1;
  in.us.assign(36, 10);
  for (uint32_t v = 1; v <= 16; ++v) {
    in.edges.push_back({0, v, 20});
    in.edges.push_back({v, 17, 20});
  }
  in.latency_us.assign(4, 0);
  in.us_per_byte.assign(4, 1);
  const auto instance = StageInstance(in);
  // 10 + x + 10 with 16 ops: device one does x / 10 of them, the other (x - 40) / 10.
  EXPECT_NEAR(bound_of(instance, kNoTime).us, 120, 1e-6);
}

TEST(StageBound, RefutesLimitsUnderWhichTooMuchMustShareADevice) {
  // Two chains that cross: any transfer costs more than everything in turns.
  StageInput in;
  in.ops = 6;
  in.devices = 3;
  in.width = 1;
  in.us.assign(18, 10);
  in.edges = {{0, 2, 100}, {1, 2, 100}, {2, 3, 100}, {2, 4, 100}, {3, 5, 100}, {4, 5, 100}};
  in.latency_us.assign(9, 0);
  in.us_per_byte.assign(9, 1);
  const auto instance = StageInstance(in);
  EXPECT_NEAR(bound_of(instance, 60).us, 60, 0.01);
}

TEST(StageBound, OfNothingIsNothing) {
  StageInput in;
  in.devices = 1;
  in.latency_us = in.us_per_byte = {0};
  EXPECT_EQ(bound_of(StageInstance(in), kNoTime).us, 0);
}

}  // namespace
}  // namespace heddle::test
