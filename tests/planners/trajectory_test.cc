#include "heddle/planners/trajectory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

TEST(Trajectory, PrimalIntegralAddsUpGaps) {
  const std::vector<Incumbent> t = {{1, 20, 0}, {3, 10, 5}, {4, 10, 10}};
  // One second without a plan, two at (20 - 10) / 20, then none.
  EXPECT_DOUBLE_EQ(primal_integral(t, 10, 10), 1 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(primal_integral(t, 10, 2), 1 + 0.5);
  EXPECT_DOUBLE_EQ(primal_integral({}, 10, 7), 7);
  const std::vector<Incumbent> none = {{0, std::numeric_limits<double>::infinity(), 3}};
  EXPECT_DOUBLE_EQ(primal_integral(none, 10, 2), 2);
}

TEST(Trajectory, MilestonesEndWithThePlanning) {
  const std::vector<Incumbent> t = {{0.5, 20, 1}, {3, 10, 5}, {40, 9, 6}};
  EXPECT_TRUE(milestones(t, 1).empty());
  const auto two = milestones(t, 40);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].seconds, 1);
  EXPECT_EQ(two[0].value_us, 20);
  EXPECT_EQ(two[1].value_us, 10);
  EXPECT_EQ(two[1].bound_us, 5);
  const auto late = milestones(std::span(t).subspan(2), 100);
  ASSERT_EQ(late.size(), 3u);
  EXPECT_TRUE(std::isinf(late[0].value_us));
  EXPECT_EQ(late[2].value_us, 9);
}

TEST(Trajectory, GivesWhatWasThereAtAMoment) {
  const std::vector<Incumbent> t = {{1, 20, 0}, {3, 10, 5}};
  EXPECT_FALSE(at_time(t, 0.5).has_value());
  EXPECT_EQ(at_time(t, 2)->value_us, 20);
  EXPECT_EQ(at_time(t, 3)->bound_us, 5);
}

TEST(Trajectory, OfAutoFallsToThePlanAndRisesToTheBound) {
  Random random(51);
  const auto problem = make_problem(make_graph(25, random_wires(random, 25, 0.2)), make_mesh(3),
                                    random_times(random, 25, 3), Objective::kLatency);
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(0.5);
  const auto result = run_planner(*find_planner("auto"), problem, options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  ASSERT_FALSE(result->trajectory.empty());
  for (size_t i = 1; i < result->trajectory.size(); ++i) {
    EXPECT_LE(result->trajectory[i].value_us, result->trajectory[i - 1].value_us);
    EXPECT_GE(result->trajectory[i].bound_us, result->trajectory[i - 1].bound_us);
  }
  EXPECT_EQ(result->trajectory.back().value_us, result->value_us);
  EXPECT_EQ(result->trajectory.back().bound_us, result->bound.us);
}

}  // namespace
}  // namespace heddle
