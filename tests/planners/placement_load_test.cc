#include "partition/placement_load.h"

#include <gtest/gtest.h>

#include "placement_support.h"

namespace heddle {
namespace {

using namespace test;

double load_of(const RandomInstance& r, const PlacementUnits& units, const std::vector<int32_t>& device) {
  const double value = r.value_us(split_of_units(r.graph(), units, device));
  EXPECT_TRUE(std::isfinite(value));
  return value;
}

std::vector<RandomPlacement> load_shapes() {
  return {{.nodes = 6},
          {.nodes = 6, .tight = true},
          {.nodes = 7, .accelerators = 1, .cpus = 1, .edge_chance = 0.2},
          {.nodes = 3, .training = true, .tight = true},
          {.nodes = 4, .accelerators = 2, .cpus = 0, .training = true},
          {.nodes = 5, .accelerators = 2, .cpus = 2, .edge_chance = 0.5}};
}

// Without CPUs a random node may run nowhere.
bool is_possible(const RandomPlacement& shape, uint64_t seed) {
  const auto json = random_placement_json(shape, seed);
  return placement_workload_from_json(json, "random", kFreeStream).ok();
}

TEST(PlacementLoad, IdealsAreExactForContiguousSplits) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      if (!is_possible(shape, seed)) continue;
      const RandomInstance r(shape, seed, kContiguousStream);
      const auto units = make_placement_units(r.graph(), PlacementOrder::kContiguous);
      const double best = best_placement_us(r.problem);
      const auto result = ideal_load(units, std::numeric_limits<double>::infinity(), 100000, Deadline());
      ASSERT_TRUE(result.exact);
      if (std::isinf(best)) {
        EXPECT_TRUE(result.device.empty());
        continue;
      }
      ASSERT_FALSE(result.device.empty()) << seed;
      EXPECT_NEAR(load_of(r, units, result.device), best, 1e-6) << seed;
      // A known bound from above prunes, and loses nothing.
      const auto pruned = ideal_load(units, best + 10, 100000, Deadline());
      ASSERT_FALSE(pruned.device.empty()) << seed;
      EXPECT_NEAR(load_of(r, units, pruned.device), best, 1e-6) << seed;
      if (best > 0) {
        EXPECT_TRUE(ideal_load(units, best * (1 - 1e-6), 100000, Deadline()).device.empty());
      }
      EXPECT_LE(load_bound(units), best + 1e-6);
    }
  }
}

TEST(PlacementLoad, ContractionLosesNothing) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 100; seed < 120; ++seed) {
      if (!is_possible(shape, seed)) continue;
      const RandomInstance r(shape, seed, kFreeStream);
      const auto units = make_placement_units(r.graph(), PlacementOrder::kNone);
      const double best = best_placement_us(r.problem);
      double contracted = std::numeric_limits<double>::infinity();
      for_each_dealing(units.size(), units.devices(), [&](const std::vector<int32_t>& device) {
        contracted = std::min(contracted, r.value_us(split_of_units(r.graph(), units, device)));
      });
      if (std::isinf(best)) {
        EXPECT_TRUE(std::isinf(contracted));
      } else {
        EXPECT_NEAR(contracted, best, 1e-6) << seed;
      }
      EXPECT_LE(load_bound(units), best + 1e-6);
      EXPECT_LE(cut_bound(units, 1e12, Deadline()), best + 1e-6) << seed;
    }
  }
}

// What the search keeps up to date is what the evaluator says, memory apart.
TEST(PlacementLoad, IncrementalLoadsAreTheEvaluators) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RandomPlacement shape{
        .nodes = 12, .accelerators = 3, .cpus = 2, .training = seed % 2 == 0, .anywhere = true};
    const RandomInstance r(shape, seed, kFreeStream);
    const auto units = make_placement_units(r.graph(), PlacementOrder::kNone);
    PlacementLoads loads(units, std::vector<int32_t>(units.size(), 3));
    Evaluator evaluator(r.problem);
    Random random(seed);
    for (int step = 0; step < 100; ++step) {
      loads.move(static_cast<int32_t>(random.below(units.size())), static_cast<int32_t>(random.below(5)));
      const auto plan = made(r.instance.plan_of(split_of_units(r.graph(), units, loads.device())));
      const auto timeline = made(evaluator.evaluate(plan));
      for (size_t d = 0; d < 5; ++d) ASSERT_NEAR(loads.load()[d], timeline.device_busy_us[d], 1e-6);
    }
  }
}

TEST(PlacementLoad, SearchFindsTheOptimumOfSmallOnes) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      if (!is_possible(shape, seed)) continue;
      const RandomInstance r(shape, seed, kFreeStream);
      const double best = best_placement_us(r.problem);
      if (std::isinf(best)) continue;
      const auto units = make_placement_units(r.graph(), PlacementOrder::kNone);
      const auto start = greedy_load(units);
      if (start.empty()) continue;
      PlacementSearchOptions options;
      options.moves = 30000;
      options.heat = 0.2;
      const auto found = search_load(units, start, options);
      EXPECT_NEAR(load_of(r, units, found), best, 1e-6) << seed;
      EXPECT_EQ(found, search_load(units, start, options));  // deterministic
    }
  }
}

}  // namespace
}  // namespace heddle
