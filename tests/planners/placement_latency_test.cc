#include "partition/placement_latency.h"

#include <gtest/gtest.h>

#include "placement_support.h"

namespace heddle {
namespace {

using namespace test;

std::vector<RandomPlacement> shapes() {
  return {{.nodes = 6},
          {.nodes = 6, .tight = true},
          {.nodes = 7, .accelerators = 1, .edge_chance = 0.2},
          {.nodes = 7, .accelerators = 2, .edge_chance = 0.2, .tight = true},
          {.nodes = 3, .training = true, .tight = true},
          {.nodes = 5, .accelerators = 3, .edge_chance = 0.6, .tight = true}};
}

double value_of(const RandomInstance& r, const LatencyProblem& problem, const std::vector<int32_t>& piece) {
  const double value = r.value_us(problem.split(piece));
  EXPECT_TRUE(std::isfinite(value));
  return value;
}

TEST(PlacementLatency, TheBoundIsBelowEverySplit) {
  for (const auto& shape : shapes()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const RandomInstance r(shape, seed, kOnePiece);
      const double best = best_placement_us(r.problem);
      EXPECT_LE(latency_bound(r.graph(), 1), best + 1e-6) << seed;
      EXPECT_LE(latency_bound(r.graph(), 2), latency_bound(r.graph(), 1) + 1e-6) << seed;
    }
  }
}

// Two pieces an accelerator: all assignments to virtual pieces.
TEST(PlacementLatency, TheBoundIsBelowEverySplitInTwoPieces) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const RandomInstance r({.nodes = 6, .accelerators = 1, .tight = true}, seed, kPiecesOfTwo);
    double best = std::numeric_limits<double>::infinity();
    for_each_dealing(6, 3, [&](const std::vector<int32_t>& dealt) {
      PlacementSplit split;
      for (const auto p : dealt) {
        split.device.push_back(p == 2 ? 1 : 0);
        split.piece.push_back(p == 2 ? 0 : p);
      }
      best = std::min(best, r.value_us(split));
    });
    EXPECT_LE(latency_bound(r.graph(), 2), best + 1e-6) << seed;
  }
}

// What the search times step by step is what the evaluator says, cycles included.
TEST(PlacementLatency, IncrementalTimesAreTheEvaluators) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const int pieces = 1 + static_cast<int>(seed % 2);
    const RandomInstance r({.nodes = 10, .accelerators = 2, .edge_chance = 0.3, .anywhere = true}, seed,
                           pieces == 1 ? kOnePiece : kPiecesOfTwo);
    const LatencyProblem problem(r.graph(), pieces);
    PlacementLatency state(problem, std::vector<int32_t>(problem.units.size(), problem.cpu()));
    Random random(seed);
    for (int step = 0; step < 200; ++step) {
      state.move(static_cast<int32_t>(random.below(problem.units.size())),
                 static_cast<int32_t>(random.below(static_cast<uint64_t>(problem.cpu()) + 1)));
      const auto plan = r.instance.plan_of(problem.split(state.device()));
      const double latency = state.time(std::numeric_limits<double>::infinity());
      ASSERT_EQ(plan.ok(), std::isfinite(latency)) << seed << " " << step;
      if (plan.ok()) {
        ASSERT_NEAR(latency, made(evaluate(r.problem, *plan)).makespan_us, 1e-6);
      }
    }
  }
}

TEST(PlacementLatency, SearchFindsTheOptimumOfSmallOnes) {
  int compared = 0;
  for (const auto& shape : shapes()) {
    // Colours tied across the training pass lie on cycles: their contraction restricts the search.
    if (shape.training) continue;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const RandomInstance r(shape, seed, kOnePiece);
      const LatencyProblem problem(r.graph(), 1);
      PlacementSearchOptions options;
      options.moves = 20000;
      options.heat = 0.3;
      const std::vector<int32_t> start(problem.units.size(), problem.cpu());
      const auto found = search_latency(problem, start, options);
      EXPECT_EQ(found, search_latency(problem, start, options));  // deterministic
      // Annealing may miss it once: the best of three seeds must not.
      double value = value_of(r, problem, found);
      for (options.seed = 2; options.seed <= 3; ++options.seed)
        value = std::min(value, value_of(r, problem, search_latency(problem, start, options)));
      EXPECT_NEAR(value, best_placement_us(r.problem), 1e-6) << seed;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(PlacementLatency, LinesAreFeasibleAndNotWorseThanTheCpus) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const RandomInstance r({.nodes = 20, .accelerators = 3, .edge_chance = 0.15, .tight = true}, seed,
                           kOnePiece);
    const LatencyProblem problem(r.graph(), 1);
    Random random(seed);
    const auto line = line_latency(problem, random_order(problem.units, seed % 2 == 0, random), Deadline());
    const double cpu = value_of(r, problem, std::vector<int32_t>(problem.units.size(), problem.cpu()));
    EXPECT_LE(value_of(r, problem, line), cpu + 1e-6) << seed;
    EXPECT_GE(value_of(r, problem, line), latency_bound(r.graph(), 1) - 1e-6) << seed;
    value_of(r, problem, greedy_latency(problem));
  }
}

}  // namespace
}  // namespace heddle
