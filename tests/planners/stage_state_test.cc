// Moves on stages: what the state says before and after each is what the full timer says.
#include "hios/stage_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stage_support.h"

namespace heddle::test {
namespace {

using Slot = StageState::Insertion;

RandomStages any_options(Random& random) {
  RandomStages o;
  o.ops = 2 + random.below(30);
  o.devices = 1 + random.below(4);
  o.width = 1 + random.below(3);
  o.unequal = random.chance(0.5);
  o.whole = random.chance(0.4);
  o.density = random.uniform(0.05, 0.4);
  return o;
}

void expect_timed(const StageInstance& instance, const StageState& state) {
  const auto timing = time_stages(instance, state.schedule());
  ASSERT_TRUE(timing.ok()) << timing.error().message();
  const double rounding = 1e-9 * (1 + timing->makespan_us);
  EXPECT_NEAR(state.makespan_us(), timing->makespan_us, rounding);
  for (uint32_t v = 0; v < instance.num_ops(); ++v) {
    ASSERT_NEAR(state.start_us(v), timing->start_us[v], rounding);
    ASSERT_NEAR(state.end_us(v), timing->end_us[v], rounding);
    ASSERT_LE(state.length_us(v), timing->makespan_us + rounding);
  }
}

// 100,000 moves of one op: the slot's makespan is known before the move, and true after it.
TEST(StageState, MovesOfOneOpAreTimedAsTheWholeScheduleIs) {
  Random random(3);
  size_t moves = 0, slots_seen = 0;
  std::vector<Slot> slots;
  while (moves < 100'000) {
    const auto instance = random_stages(random, any_options(random));
    StageState state(instance);
    state.load(random_schedule(random, instance));
    expect_timed(instance, state);
    for (int i = 0; i < 250; ++i, ++moves) {
      const auto v = static_cast<uint32_t>(random.below(instance.num_ops()));
      const double before = state.makespan_us();
      state.remove(v);
      EXPECT_FALSE(state.placed(v));
      const double rest = state.makespan_us();
      EXPECT_LE(rest, before);
      slots.clear();
      state.slots(v, StageState::kAny, kNoTime, slots);
      slots_seen += slots.size();
      if (slots.empty()) {
        state.undo();
        continue;
      }
      const Slot slot = slots[random.below(slots.size())];
      ASSERT_TRUE(state.insert(v, slot));
      const auto timing = time_stages(instance, state.schedule());
      ASSERT_TRUE(timing.ok()) << timing.error().message();
      const double rounding = 1e-9 * (1 + timing->makespan_us);
      ASSERT_NEAR(std::max(rest, slot.length_us), timing->makespan_us, rounding);
      ASSERT_NEAR(state.makespan_us(), timing->makespan_us, rounding);
      ASSERT_NEAR(slot.end_us, timing->end_us[v], rounding);
      EXPECT_EQ(state.device(v), slot.device);
      EXPECT_EQ(state.stage_size(v) > 1, slot.join);
      if (random.chance(0.7)) {
        state.keep();
      } else {
        state.undo();
        ASSERT_EQ(state.makespan_us(), before);
      }
    }
    expect_timed(instance, state);
  }
  EXPECT_GT(slots_seen, moves);
}

// Chains, stages and any other sets: all go out, and back in an order in which producers come first. What
// deadlocks is refused; what is not refused is timed right.
TEST(StageState, SetsOfOpsGoOutAndBack) {
  Random random(5);
  std::vector<Slot> slots;
  size_t kept = 0;
  for (int round = 0; round < 100; ++round) {
    const auto instance = random_stages(random, any_options(random));
    StageState state(instance);
    state.load(random_schedule(random, instance));
    std::vector<uint32_t> place(instance.num_ops());
    for (uint32_t i = 0; i < place.size(); ++i) place[instance.topological()[i]] = i;
    for (int i = 0; i < 100; ++i) {
      std::vector<uint32_t> set(instance.topological().begin(), instance.topological().end());
      random.shuffle(set);
      set.resize(1 + random.below(std::min<size_t>(5, set.size())));
      std::sort(set.begin(), set.end(), [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
      for (const uint32_t v : set) state.remove(v);
      bool fits = true;
      for (const uint32_t v : set) {
        slots.clear();
        state.slots(v, StageState::kAny, kNoTime, slots);
        fits = !slots.empty() && state.insert(v, slots[random.below(slots.size())]);
        if (!fits) break;
      }
      if (!fits) {
        state.undo();
        continue;
      }
      state.keep();
      ++kept;
      expect_timed(instance, state);
    }
  }
  EXPECT_GT(kept, 5'000U);
}

TEST(StageState, SlotsOfOneDeviceAndUnderALimitAreAmongAllSlots) {
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    const auto instance = random_stages(random, any_options(random));
    StageState state(instance);
    state.load(random_schedule(random, instance));
    const auto v = static_cast<uint32_t>(random.below(instance.num_ops()));
    state.remove(v);
    std::vector<Slot> all, some;
    state.slots(v, StageState::kAny, kNoTime, all);
    const double limit = all.empty() ? 0 : all[random.below(all.size())].length_us;
    size_t expected = 0;
    for (const Slot& s : all) expected += s.length_us <= limit;
    for (uint32_t d = 0; d < instance.num_devices(); ++d) state.slots(v, d, limit, some);
    EXPECT_EQ(some.size(), expected);
  }
}

// Where op 0 of a chain 0 -> 1 -> 2 with everything on one device is taken out, it can only go back first.
TEST(StageState, NoSlotMakesStagesWaitForEachOther) {
  StageInput in;
  in.ops = 3;
  in.devices = 1;
  in.us = {1, 1, 1};
  in.edges = {{0, 1, 0}, {1, 2, 0}};
  in.latency_us = in.us_per_byte = {0};
  const auto instance = StageInstance(in);
  StageState state(instance);
  state.load({{{{0}, {1}, {2}}}});
  for (uint32_t v = 0; v < 3; ++v) {
    state.remove(v);
    std::vector<Slot> slots;
    state.slots(v, StageState::kAny, kNoTime, slots);
    ASSERT_EQ(slots.size(), 1U);
    EXPECT_EQ(slots[0].index, v);
    EXPECT_FALSE(slots[0].join);
    state.undo();
  }
  state.remove(0);
  EXPECT_FALSE(state.insert(0, {0, 1, true, 0, 0}));  // into the stage of op 2, which waits for 1
  state.undo();
  EXPECT_DOUBLE_EQ(state.makespan_us(), 3);
}

TEST(StageState, ExpectedTailsCountUntilOutputsArePlaced) {
  StageInput in;
  in.ops = 2;
  in.devices = 2;
  in.us = {1, 1, 2, 2};
  in.edges = {{0, 1, 4}};
  in.latency_us = {0, 0, 0, 0};
  in.us_per_byte = {0, 1, 1, 0};
  const auto instance = StageInstance(in);
  StageState state(instance);
  state.expect_tails({6, 0});
  std::vector<Slot> slots;
  state.slots(0, 0, kNoTime, slots);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_DOUBLE_EQ(slots[0].length_us, 7);
  EXPECT_DOUBLE_EQ(slots[0].end_us, 1);
  ASSERT_TRUE(state.insert(0, slots[0]));
  EXPECT_DOUBLE_EQ(state.makespan_us(), 1);
  slots.clear();
  state.slots(1, 1, kNoTime, slots);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_DOUBLE_EQ(slots[0].length_us, 7);
}

}  // namespace
}  // namespace heddle::test
