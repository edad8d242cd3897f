// Placement-search: values and bounds against brute force, and the published optima.
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/plan/problem_edit.h"
#include "heddle/planners/planner.h"
#include "placement_support.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

Result<PlanResult> search_placement(const Problem& problem, double seconds) {
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(seconds);
  options.threads = 2;
  return run_planner(*find_planner("placement-search"), problem, options);
}

// Every mode: a checked split, the bound below the optimum.
TEST(PlacementSearch, ValuesAndBoundsEncloseTheOptimum) {
  for (const auto& options : {kContiguousStream, kFreeStream, kOnePiece}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const Problem p = random_placement_problem({.nodes = 6, .tight = seed % 2 == 0}, seed, options);
      const double best = best_placement_us(p);
      const auto plan = search_placement(p, options.contiguous ? 60 : 0.2);
      ASSERT_TRUE(plan.ok()) << plan.error().to_string();
      EXPECT_NEAR(plan->value_us, best, 1e-6) << seed;
      EXPECT_LE(plan->bound.us, best + 1e-6) << seed;
      if (options.contiguous) {
        EXPECT_EQ(plan->stop, StopReason::kOptimal);
      }
    }
  }
}

TEST(PlacementSearch, SeveralPiecesAreNotWorseThanOne) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const RandomPlacement shape{.nodes = 6, .accelerators = 1, .tight = true};
    const auto plan = search_placement(random_placement_problem(shape, seed, kPiecesOfTwo), 0.3);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_LE(plan->value_us, best_placement_us(random_placement_problem(shape, seed, kOnePiece)) + 1e-6);
  }
}

TEST(PlacementSearch, SaysWhenNothingFits) {
  Json json = random_placement_json({.nodes = 5, .accelerators = 2, .cpus = 0, .anywhere = true}, 3);
  json["maxSizePerFPGA"] = 0.5;
  json["nodes"][2]["size"] = 1;
  const auto plan = search_placement(must(placement_workload_from_json(json, "w", kContiguousStream)), 1);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Code::kInfeasible);
  EXPECT_NE(plan.error().message().find("more memory"), std::string::npos);
}

TEST(PlacementSearch, RefusesDevicesOfAKindThatDiffer) {
  const Problem p = random_placement_problem({}, 1, kFreeStream);
  const Problem uneven = must(edit_problem(p, {.cluster = {.scale = "accelerator0", .factor = 2}}));
  const auto plan = search_placement(uneven, 1);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Code::kUnsupported);
  EXPECT_NE(plan.error().message().find("accelerator0"), std::string::npos);
}

TEST(PlacementSearch, GivesTheBestSoFarWhenItsTimeHasPassed) {
  const Problem p = random_placement_problem({.nodes = 60, .accelerators = 4, .edge_chance = 0.05}, 1, {});
  const auto plan = search_placement(p, 0);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
}

// The published optima (reference.csv), which took the authors' programme minutes or did not end.
TEST(PlacementSearch, ProvesTheContiguousOptimaOfThePublicWorkloads) {
  const std::string folder = public_data("dnn-partitioning");
  if (!file_exists(folder + "README.md")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const struct {
    const char* file;
    double value;
  } kOptima[] = {{"LayerGraphs/inceptionv3_inference", 51.551864},
                 {"LayerGraphs/inceptionv3_training", 122.761616},
                 {"OperatorGraphs/bert_l-12_inference", 147.477984},
                 {"OperatorGraphs/bert_L-12_training", 437.997638},
                 {"OperatorGraphs/resnet50_training", 255.194416}};
  for (const auto& optimum : kOptima) {
    const auto p =
        read_placement_workload(folder + "throughput-inputs/" + optimum.file + ".json", kContiguousStream);
    ASSERT_TRUE(p.ok());
    const auto plan = search_placement(*p, 120);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->stop, StopReason::kOptimal);
    EXPECT_NEAR(plan->value_us / kPlacementUnitUs, optimum.value, 2e-6);
  }
}

}  // namespace
}  // namespace heddle
