// Moirai's program against brute force, and its baselines on cases worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/base/random.h"
#include "heddle/plan/builder.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"
#include "random_small.h"

namespace heddle {
namespace {

using namespace test;

// With one reader a tensor, ports and no shared links, Heddle's problem is the paper's.
TEST(Moirai, FindsTheOptimumOfSmallProblems) {
  Random random(21);
  for (int i = 0; i < 6; ++i) {
    const auto problem = make_problem(make_graph(5, random_wires(random, 5, 0.5)), make_mesh(2),
                                      random_times(random, 5, 2), Objective::kLatency);
    const double best = brute_force_us(problem);
    const auto plan = must_plan("moirai", problem, 20);
    EXPECT_NEAR(plan.value_us, best, 1e-6) << i;
    EXPECT_NEAR(plan.bound.us, best, 1e-4 * best) << i;
    EXPECT_LE(plan.bound.us, best);
  }
}

// Devices with and without engines, of shared memory, and routes of a plan's own: what the program proves holds for all
// plans.
TEST(Moirai, ProvesNoMoreThanTheBestOfAllPlans) {
  Random random(25);
  int proven = 0;
  for (int i = 0; i < 80; ++i) {
    const Problem problem = random_small_problem(random, Objective::kLatency);
    int64_t plans = 0;
    const double best = best_of_all_plans(problem, plans);
    PlannerOptions options;
    options.deadline = Deadline::after_seconds(2);
    const auto planned = run_planner(*find_planner("moirai"), problem, options);
    if (!planned.ok()) {
      EXPECT_NE(planned.error().code(), Code::kInternal) << planned.error().to_string();
      continue;
    }
    EXPECT_LE(planned->bound.us, best * (1 + 1e-9)) << i;
    proven += planned->bound.proof.reason.find("Moirai") != std::string::npos ? 1 : 0;
  }
  std::printf("%d bounds by the program\n", proven);
}

TEST(Moirai, KeepsWithinMemory) {
  // Ops 0 and 1 would both be fastest on device 0, where there is room for one: 5 there, 1 to send, 1 for
  // op 2.
  const auto problem = make_problem(make_graph(3, {{0, 2, 1}, {1, 2, 1}}, {60, 60, 0}), make_mesh(2, 80),
                                    {{1, 5}, {1, 5}, {1, 5}}, Objective::kLatency);
  const auto plan = must_plan("moirai", problem, 10);
  EXPECT_DOUBLE_EQ(plan.value_us, 7);
}

TEST(Moirai, PlansLargerGraphsOnUnits) {
  Random random(22);
  const auto problem = make_problem(make_graph(300, random_wires(random, 300, 0.01)), make_mesh(3),
                                    random_times(random, 300, 3), Objective::kLatency);
  const auto plan = must_plan("moirai", problem, 2);
  EXPECT_NE(plan.detail.find("units"), std::string::npos) << plan.detail;
  EXPECT_LE(plan.value_us, must_plan("heft", problem, 2).value_us);
}

// Op 0 feeds 1 and 2; sending takes longer than any op. Its favourite child, the one with more behind it,
// stays.
TEST(MSct, KeepsTheFavouriteChildOnItsDevice) {
  const auto problem = make_problem(make_graph(4, {{0, 1, 9}, {0, 2, 9}, {2, 3, 9}}), make_mesh(2),
                                    std::vector<std::vector<double>>(4, {10, 10}), Objective::kLatency);
  const auto plan = must_plan("m-sct", problem, 5);
  EXPECT_GT(plan.counters.at("favourite_children"), 0);
  EXPECT_EQ(plan.counters.at("relaxation_solved"), 1);
  const auto a = assignment_of(problem, plan.plan);
  EXPECT_EQ(a.device[0], a.device[2]);
  EXPECT_EQ(a.device[2], a.device[3]);
  EXPECT_DOUBLE_EQ(plan.value_us, 30);
}

TEST(MSct, SaysWhenTheProgramIsTooLarge) {
  Random random(23);
  const auto problem = make_problem(make_graph(600, random_wires(random, 600, 0.05)), make_mesh(2),
                                    random_times(random, 600, 2), Objective::kLatency);
  const auto plan = must_plan("m-sct", problem, 5);
  EXPECT_EQ(plan.counters.at("relaxation_solved"), 0);
  EXPECT_NE(plan.detail.find("too large"), std::string::npos);
}

// One fast device and three slow ones: the critical path belongs to the fast group, earliest time first alone
// would start it on a slow device that is free.
TEST(Getf, KeepsHeavyOpsInTheFastGroup) {
  const std::vector<double> times{10, 100, 100, 100};
  const auto problem = make_problem(make_graph(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}), make_mesh(4),
                                    std::vector<std::vector<double>>(4, times), Objective::kLatency);
  const auto plan = must_plan("getf", problem, 5);
  EXPECT_EQ(plan.counters.at("groups"), 2);
  EXPECT_DOUBLE_EQ(plan.value_us, 40);
}

TEST(Getf, GoesToOtherGroupsWhereTheFastOneIsFull) {
  const std::vector<double> times{10, 100, 100, 100};
  const auto problem =
      make_problem(make_graph(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}, {50, 50, 50, 50}), make_mesh(4, 120),
                   std::vector<std::vector<double>>(4, times), Objective::kLatency);
  EXPECT_TRUE(must_plan("getf", problem, 5).verified);
}

TEST(Placeto, LearnsToUseTheFasterDeviceAndSaysOnHowManyPlacements) {
  std::vector<Wire> wires;
  for (int v = 0; v + 1 < 30; ++v) wires.push_back({v, v + 1, 5});
  const auto problem = make_problem(make_graph(30, wires), make_mesh(2),
                                    std::vector<std::vector<double>>(30, {8, 4}), Objective::kLatency);
  const auto plan = must_plan("placeto", problem, 1);
  EXPECT_DOUBLE_EQ(plan.value_us, 120);
  EXPECT_GT(plan.counters.at("placements"), 10);
  EXPECT_NE(plan.detail.find("placements"), std::string::npos);
}

TEST(Placeto, IsTheSameForASeedWithoutADeadline) {
  Random random(24);
  const auto problem = make_problem(make_graph(12, random_wires(random, 12, 0.3)), make_mesh(3),
                                    random_times(random, 12, 3), Objective::kLatency);
  const auto a = run_planner(*find_planner("placeto"), problem, {});
  const auto b = run_planner(*find_planner("placeto"), problem, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_DOUBLE_EQ(a->value_us, b->value_us);
  EXPECT_EQ(assignment_of(problem, a->plan).device, assignment_of(problem, b->plan).device);
}

}  // namespace
}  // namespace heddle
