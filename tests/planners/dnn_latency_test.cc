#include "partition/dnn_latency.h"

#include <gtest/gtest.h>

#include "plan/dnn_support.h"

namespace heddle {
namespace {

constexpr DnnRules kOnePiece{DnnObjective::kLatency, true, 1};

std::vector<RandomDnn> shapes() {
  return {{.nodes = 6},
          {.nodes = 6, .tight = true},
          {.nodes = 7, .accelerators = 1, .edge_chance = 0.2},
          {.nodes = 7, .accelerators = 2, .edge_chance = 0.2, .tight = true},
          {.nodes = 3, .training = true, .tight = true},
          {.nodes = 5, .accelerators = 3, .edge_chance = 0.6, .tight = true}};
}

double value_of(const LatencyProblem& problem, const std::vector<int32_t>& piece) {
  const auto split = problem.split(piece);
  const auto status =
      check_dnn_split(problem.workload, split, {DnnObjective::kLatency, false, problem.pieces});
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return evaluate_dnn_split(problem.workload, split, DnnObjective::kLatency)->value;
}

TEST(DnnLatency, TheBoundIsBelowEverySplit) {
  for (const auto& shape : shapes()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const auto w = random_dnn(shape, seed);
      const double best = best_dnn_value(w, kOnePiece);
      EXPECT_LE(latency_bound(w, 1), best + 1e-9) << seed;
      EXPECT_LE(latency_bound(w, 2), latency_bound(w, 1) + 1e-9) << seed;
    }
  }
}

// Two pieces an accelerator: all assignments to virtual pieces.
TEST(DnnLatency, TheBoundIsBelowEverySplitInTwoPieces) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const auto w = random_dnn({.nodes = 6, .accelerators = 1, .tight = true}, seed);
    double best = std::numeric_limits<double>::infinity();
    for_each_split(6, 3, [&](const DnnSplit& virtual_split) {
      DnnSplit split;
      for (const auto p : virtual_split.device) {
        split.device.push_back(p == 2 ? 1 : 0);
        split.piece.push_back(p == 2 ? 0 : p);
      }
      if (check_dnn_split(w, split, {DnnObjective::kLatency, false, 2}).ok())
        best = std::min(best, evaluate_dnn_split(w, split, DnnObjective::kLatency)->value);
    });
    EXPECT_LE(latency_bound(w, 2), best + 1e-9) << seed;
  }
}

// What the search times step by step is what the evaluator says, cycles included.
TEST(DnnLatency, IncrementalTimesAreTheEvaluators) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto w = random_dnn({.nodes = 10, .accelerators = 2, .edge_chance = 0.3}, seed);
    const LatencyProblem problem(w, 1 + static_cast<int>(seed % 2));
    DnnLatency state(problem, std::vector<int32_t>(problem.units.size(), problem.cpu()));
    Random random(seed);
    for (int step = 0; step < 200; ++step) {
      state.move(static_cast<int32_t>(random.below(problem.units.size())),
                 static_cast<int32_t>(random.below(static_cast<uint64_t>(problem.cpu()) + 1)));
      const auto value = evaluate_dnn_split(w, problem.split(state.piece()), DnnObjective::kLatency);
      const double latency = state.latency(std::numeric_limits<double>::infinity());
      ASSERT_EQ(value.ok(), std::isfinite(latency)) << seed << " " << step;
      if (value.ok()) {
        ASSERT_NEAR(latency, value->value, 1e-9);
      }
    }
  }
}

TEST(DnnLatency, SearchFindsTheOptimumOfSmallOnes) {
  int compared = 0;
  for (const auto& shape : shapes()) {
    // Colours tied across the training pass lie on cycles: their contraction restricts the search.
    if (shape.training) continue;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto w = random_dnn(shape, seed);
      const LatencyProblem problem(w, 1);
      LatencySearchOptions options;
      options.moves = 20000;
      options.heat = 0.3;
      const std::vector<int32_t> start(problem.units.size(), problem.cpu());
      const auto found = search_latency(problem, start, options);
      EXPECT_EQ(found, search_latency(problem, start, options));  // deterministic
      // Annealing may miss it once: the best of three seeds must not.
      double value = value_of(problem, found);
      for (options.seed = 2; options.seed <= 3; ++options.seed)
        value = std::min(value, value_of(problem, search_latency(problem, start, options)));
      EXPECT_NEAR(value, best_dnn_value(w, kOnePiece), 1e-9) << seed;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(DnnLatency, LinesAreFeasibleAndNotWorseThanTheCpus) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto w = random_dnn({.nodes = 20, .accelerators = 3, .edge_chance = 0.15, .tight = true}, seed);
    const LatencyProblem problem(w, 1);
    Random random(seed);
    const auto line = line_latency(problem, random_order(problem.units, seed % 2 == 0, random), Deadline());
    const double cpu = value_of(problem, std::vector<int32_t>(problem.units.size(), problem.cpu()));
    EXPECT_LE(value_of(problem, line), cpu + 1e-9) << seed;
    EXPECT_GE(value_of(problem, line), latency_bound(w, 1) - 1e-9) << seed;
    value_of(problem, greedy_latency(problem));
  }
}

}  // namespace
}  // namespace heddle
