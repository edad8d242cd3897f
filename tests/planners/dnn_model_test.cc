// The CP-SAT models of placement workloads against brute force.
#include <gtest/gtest.h>

#include "partition/dnn_latency_model.h"
#include "partition/dnn_load_model.h"
#include "plan/dnn_support.h"

namespace heddle {
namespace {

struct Answer {
  Status status;
  double value = std::numeric_limits<double>::infinity(), bound = 0;
};

// Skips in builds that cannot load the solver.
#define SKIP_WITHOUT_SOLVER(answer)                                                  \
  if (!(answer).status.ok() && (answer).status.error().code() == Code::kUnsupported) \
  GTEST_SKIP() << (answer).status.error().to_string()

Answer solve_load(const DnnWorkload& w, const DnnUnits& units, const std::vector<int32_t>& hint) {
  Answer answer;
  const auto value_of = [&](const std::vector<int32_t>& device) {
    const auto split = dnn_split_of_units(w, units, device);
    EXPECT_TRUE(check_dnn_split(w, split, {DnnObjective::kMaxLoad, false, 1}).ok());
    return evaluate_dnn_split(w, split, DnnObjective::kMaxLoad)->value;
  };
  answer.status = solve_load_model(
      units, hint, value_of(hint), {},
      {[&](const std::vector<int32_t>& device) { answer.value = std::min(answer.value, value_of(device)); },
       [&](double bound) { answer.bound = std::max(answer.bound, bound); }});
  return answer;
}

TEST(DnnModel, MaxLoadMeetsBruteForce) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto w = random_dnn(
        {
            .nodes = 6,
            .tight = seed % 2 == 0,
        },
        seed);
    const auto units = make_dnn_units(w, DnnOrder::kNone);
    const auto answer = solve_load(w, units, std::vector<int32_t>(units.size(), w.accelerators));
    SKIP_WITHOUT_SOLVER(answer);
    const double best = best_dnn_value(w, {DnnObjective::kMaxLoad, false, 1});
    ASSERT_TRUE(answer.status.ok()) << answer.status.error().to_string();
    EXPECT_NEAR(answer.value, best, 1e-9) << seed;
    EXPECT_LE(answer.bound, best + 1e-9);
    EXPECT_GE(answer.bound, best * (1 - 1e-6));
  }
}

TEST(DnnModel, LatencyMeetsBruteForce) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const auto w =
        random_dnn({.nodes = 6, .accelerators = 2, .edge_chance = 0.3, .tight = seed % 2 == 0}, seed);
    const LatencyProblem problem(w, 1);
    const std::vector<int32_t> hint(problem.units.size(), problem.cpu());
    const DnnRules rules{DnnObjective::kLatency, true, 1};
    Answer answer;
    const auto value_of = [&](const std::vector<int32_t>& piece) {
      const auto split = problem.split(piece);
      // Pieces without any duration may wait for each other in the model.
      return check_dnn_split(w, split, rules).ok() ? evaluate_dnn_split(w, split, rules.objective)->value
                                                   : std::numeric_limits<double>::infinity();
    };
    answer.status = solve_latency_model(
        problem, hint, value_of(hint), latency_bound(w, 1), {},
        {[&](const std::vector<int32_t>& piece) { answer.value = std::min(answer.value, value_of(piece)); },
         [&](double bound) { answer.bound = std::max(answer.bound, bound); }});
    SKIP_WITHOUT_SOLVER(answer);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error().to_string();
    const double best = best_dnn_value(w, rules);
    EXPECT_LE(answer.bound, best + 1e-9) << seed;
    EXPECT_GE(answer.bound, best * (1 - 1e-6)) << seed;
    if (std::isfinite(answer.value)) {
      EXPECT_NEAR(answer.value, best, 1e-9) << seed;
    }
  }
}

}  // namespace
}  // namespace heddle
