// The CP-SAT models of placement workloads against brute force.
#include <gtest/gtest.h>

#include "partition/placement_models.h"
#include "placement_support.h"

namespace heddle {
namespace {

using namespace test;

struct Answer {
  Status status;
  double value = std::numeric_limits<double>::infinity(), bound = 0;
};

// Skips in builds that cannot load the solver.
#define SKIP_WITHOUT_SOLVER(answer)                                                  \
  if (!(answer).status.ok() && (answer).status.error().code() == Code::kUnsupported) \
  GTEST_SKIP() << (answer).status.error().to_string()

Answer solve_load(const RandomInstance& r, const PlacementUnits& units, const std::vector<int32_t>& hint) {
  Answer answer;
  const auto value_of = [&](const std::vector<int32_t>& device) {
    return r.value_us(split_of_units(r.graph(), units, device));
  };
  answer.status = solve_load_model(
      units, hint, value_of(hint), {},
      {[&](const std::vector<int32_t>& device) { answer.value = std::min(answer.value, value_of(device)); },
       [&](double bound) { answer.bound = std::max(answer.bound, bound); }});
  return answer;
}

TEST(PlacementModel, MaxLoadMeetsBruteForce) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const RandomInstance r({.nodes = 6, .tight = seed % 2 == 0}, seed, kFreeStream);
    const auto units = make_placement_units(r.graph(), PlacementOrder::kNone);
    const auto answer = solve_load(r, units, std::vector<int32_t>(units.size(), r.graph().accelerators));
    SKIP_WITHOUT_SOLVER(answer);
    const double best = best_placement_us(r.problem);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error().to_string();
    EXPECT_NEAR(answer.value, best, 1e-6) << seed;
    EXPECT_LE(answer.bound, best + 1e-6);
    EXPECT_GE(answer.bound, best * (1 - 1e-6));
  }
}

TEST(PlacementModel, LatencyMeetsBruteForce) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const RandomInstance r({.nodes = 6, .accelerators = 2, .edge_chance = 0.3, .tight = seed % 2 == 0}, seed,
                           kOnePiece);
    const LatencyProblem problem(r.graph(), 1);
    const std::vector<int32_t> hint(problem.units.size(), problem.cpu());
    Answer answer;
    // Pieces without any duration may wait for each other in the model: they have no value.
    const auto value_of = [&](const std::vector<int32_t>& piece) { return r.value_us(problem.split(piece)); };
    answer.status = solve_latency_model(
        problem, hint, value_of(hint), latency_bound(r.graph(), 1), {},
        {[&](const std::vector<int32_t>& piece) { answer.value = std::min(answer.value, value_of(piece)); },
         [&](double bound) { answer.bound = std::max(answer.bound, bound); }});
    SKIP_WITHOUT_SOLVER(answer);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error().to_string();
    const double best = best_placement_us(r.problem);
    EXPECT_LE(answer.bound, best + 1e-6) << seed;
    EXPECT_GE(answer.bound, best * (1 - 1e-6)) << seed;
    if (std::isfinite(answer.value)) {
      EXPECT_NEAR(answer.value, best, 1e-6) << seed;
    }
  }
}

}  // namespace
}  // namespace heddle
