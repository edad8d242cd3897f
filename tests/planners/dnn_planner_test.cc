#include "heddle/planners/dnn_planner.h"

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "plan/dnn_support.h"

namespace heddle {
namespace {

DnnPlanOptions within(double seconds) {
  DnnPlanOptions options;
  options.deadline = Deadline::after_seconds(seconds);
  return options;
}

// Every mode: a checked split, its value the evaluator's, the bound below the optimum.
TEST(DnnPlanner, ValuesAndBoundsEncloseTheOptimum) {
  const DnnRules kRules[] = {{DnnObjective::kMaxLoad, true, 1},
                             {DnnObjective::kMaxLoad, false, 1},
                             {DnnObjective::kLatency, true, 1}};
  for (const auto& rules : kRules) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto w = random_dnn({.nodes = 6, .tight = seed % 2 == 0}, seed);
      const double best = best_dnn_value(w, rules);
      const auto plan = plan_dnn(w, rules, within(0.2));
      ASSERT_TRUE(plan.ok()) << plan.error().to_string();
      EXPECT_TRUE(check_dnn_split(w, plan->split, rules).ok());
      EXPECT_EQ(evaluate_dnn_split(w, plan->split, rules.objective)->value, plan->value);
      EXPECT_NEAR(plan->value, best, 1e-9) << seed;
      EXPECT_LE(plan->bound, best + 1e-9) << seed;
      if (rules.contiguous && rules.objective == DnnObjective::kMaxLoad) {
        EXPECT_TRUE(plan->optimal);
      }
    }
  }
}

TEST(DnnPlanner, SeveralPiecesAreNotWorseThanOne) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto w = random_dnn({.nodes = 6, .accelerators = 1, .tight = true}, seed);
    const auto plan = plan_dnn(w, {DnnObjective::kLatency, false, 2}, within(0.3));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_LE(plan->value, best_dnn_value(w, {DnnObjective::kLatency, true, 1}) + 1e-9);
  }
}

TEST(DnnPlanner, SaysWhenNothingFits) {
  auto w = random_dnn({.nodes = 5, .accelerators = 2, .cpus = 0}, 3);
  w.accelerator_bytes = 0.5;
  w.nodes[2].bytes = 1;
  const auto plan = plan_dnn(w, {DnnObjective::kMaxLoad, true, 1}, within(1));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Code::kInfeasible);
  EXPECT_NE(plan.error().message().find("more memory"), std::string::npos);
}

TEST(DnnPlanner, RefusesNonsense) {
  const auto w = random_dnn({}, 1);
  EXPECT_FALSE(plan_dnn(w, {DnnObjective::kLatency, false, 0}, within(1)).ok());
}

TEST(DnnPlanner, CancellationGivesTheBestSoFar) {
  const auto w = random_dnn({.nodes = 60, .accelerators = 4, .edge_chance = 0.05}, 1);
  const CancelToken token;
  token.cancel();
  DnnPlanOptions options;
  options.deadline = Deadline::never(token);
  const auto plan = plan_dnn(w, {DnnObjective::kLatency, true, 1}, options);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
}

// The published optima (reference.csv), which took the authors' programme minutes or did not end.
TEST(DnnPlanner, ProvesTheContiguousOptimaOfThePublicWorkloads) {
  if (!file_exists(dnn_data() + "README.md")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const struct {
    const char* file;
    double value;
  } kOptima[] = {{"LayerGraphs/inceptionv3_inference", 51.551864},
                 {"LayerGraphs/inceptionv3_training", 122.761616},
                 {"OperatorGraphs/bert_l-12_inference", 147.477984},
                 {"OperatorGraphs/bert_L-12_training", 437.997638},
                 {"OperatorGraphs/resnet50_training", 255.194416}};
  for (const auto& optimum : kOptima) {
    const auto w = read_dnn_workload(dnn_data() + "throughput-inputs/" + optimum.file + ".json");
    ASSERT_TRUE(w.ok());
    const auto plan = plan_dnn(*w, {DnnObjective::kMaxLoad, true, 1}, within(120));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_TRUE(plan->optimal);
    EXPECT_NEAR(plan->value, optimum.value, 2e-6);
  }
}

}  // namespace
}  // namespace heddle
