#include "partition/dnn_load.h"

#include <gtest/gtest.h>

#include "partition/dnn_load_search.h"
#include "plan/dnn_support.h"

namespace heddle {
namespace {

constexpr DnnRules kContiguous{DnnObjective::kMaxLoad, true, 1};
constexpr DnnRules kFreeLoad{DnnObjective::kMaxLoad, false, 1};

double load_of(const DnnWorkload& w, const DnnUnits& units, const std::vector<int32_t>& device,
               const DnnRules& rules) {
  const auto split = dnn_split_of_units(w, units, device);
  const auto status = check_dnn_split(w, split, rules);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return evaluate_dnn_split(w, split, DnnObjective::kMaxLoad)->value;
}

std::vector<RandomDnn> load_shapes() {
  return {{.nodes = 6},
          {.nodes = 6, .tight = true},
          {.nodes = 7, .accelerators = 1, .cpus = 1, .edge_chance = 0.2},
          {.nodes = 3, .training = true, .tight = true},
          {.nodes = 4, .accelerators = 2, .cpus = 0, .training = true},
          {.nodes = 5, .accelerators = 2, .cpus = 2, .edge_chance = 0.5}};
}

TEST(DnnLoad, IdealsAreExactForContiguousSplits) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 0; seed < 25; ++seed) {
      const auto w = random_dnn(shape, seed);
      const auto units = make_dnn_units(w, DnnOrder::kContiguous);
      const double best = best_dnn_value(w, kContiguous);
      const auto result = ideal_load(units, std::numeric_limits<double>::infinity(), 100000, Deadline());
      ASSERT_TRUE(result.exact);
      if (std::isinf(best)) {
        EXPECT_TRUE(result.device.empty());
        continue;
      }
      ASSERT_FALSE(result.device.empty()) << seed;
      EXPECT_NEAR(load_of(w, units, result.device, kContiguous), best, 1e-9) << seed;
      // A known bound from above prunes, and loses nothing.
      const auto pruned = ideal_load(units, best + 0.01, 100000, Deadline());
      ASSERT_FALSE(pruned.device.empty()) << seed;
      EXPECT_NEAR(load_of(w, units, pruned.device, kContiguous), best, 1e-9) << seed;
      if (best > 0) {
        EXPECT_TRUE(ideal_load(units, best * (1 - 1e-6), 100000, Deadline()).device.empty());
      }
      EXPECT_LE(load_bound(units), best + 1e-9);
    }
  }
}

TEST(DnnLoad, ContractionLosesNothing) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 100; seed < 120; ++seed) {
      const auto w = random_dnn(shape, seed);
      const auto units = make_dnn_units(w, DnnOrder::kNone);
      const double best = best_dnn_value(w, kFreeLoad);
      double contracted = std::numeric_limits<double>::infinity();
      for_each_split(units.size(), units.devices(), [&](const DnnSplit& split) {
        const auto whole = dnn_split_of_units(w, units, split.device);
        if (check_dnn_split(w, whole, kFreeLoad).ok())
          contracted = std::min(contracted, evaluate_dnn_split(w, whole, kFreeLoad.objective)->value);
      });
      if (std::isinf(best)) {
        EXPECT_TRUE(std::isinf(contracted));
      } else {
        EXPECT_NEAR(contracted, best, 1e-9) << seed;
      }
      EXPECT_LE(load_bound(units), best + 1e-9);
      EXPECT_LE(cut_bound(units, 1e9, Deadline()), best + 1e-9) << seed;
    }
  }
}

// What the search keeps up to date is what the evaluator says.
TEST(DnnLoad, IncrementalLoadsAreTheEvaluators) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto w = random_dnn({.nodes = 12, .accelerators = 3, .cpus = 2, .training = seed % 2 == 0}, seed);
    const auto units = make_dnn_units(w, DnnOrder::kNone);
    DnnLoads loads(units, std::vector<int32_t>(units.size(), w.accelerators));
    Random random(seed);
    for (int step = 0; step < 100; ++step) {
      loads.move(static_cast<int32_t>(random.below(units.size())), static_cast<int32_t>(random.below(5)));
      const auto value =
          *evaluate_dnn_split(w, dnn_split_of_units(w, units, loads.device()), kFreeLoad.objective);
      for (size_t d = 0; d < value.loads.size(); ++d) ASSERT_NEAR(loads.load()[d], value.loads[d], 1e-9);
    }
  }
}

TEST(DnnLoad, SearchFindsTheOptimumOfSmallOnes) {
  for (const auto& shape : load_shapes()) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const auto w = random_dnn(shape, seed);
      const double best = best_dnn_value(w, kFreeLoad);
      if (std::isinf(best)) continue;
      const auto units = make_dnn_units(w, DnnOrder::kNone);
      const auto start = greedy_load(units);
      if (start.empty()) continue;
      LoadSearchOptions options;
      options.moves = 30000;
      options.heat = 0.2;
      const auto found = search_load(units, start, options);
      EXPECT_NEAR(load_of(w, units, found, kFreeLoad), best, 1e-9) << seed;
      EXPECT_EQ(found, search_load(units, start, options));  // deterministic
    }
  }
}

}  // namespace
}  // namespace heddle
