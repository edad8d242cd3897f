// A plan below a bound is an internal error, whoever made the bound, and the instance is kept.
#include "heddle/planners/shared_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/plan/checker.h"
#include "heddle/plan/plan_file.h"
#include "planners_support.h"

namespace heddle {
namespace {

using testing::HasSubstr;

Problem chain() {
  return test::make_problem(test::make_graph(3, {{0, 1, 10}, {1, 2, 10}}), test::make_mesh(2),
                            {{4, 5}, {6, 3}, {2, 2}}, Objective::kLatency);
}

// The file that the error names, which is then removed.
PlanFile kept_by(const Error& error) {
  const std::string text = error.to_string();
  const std::string path = text.substr(text.find("below-bound-"), 12 + 16 + 5);
  PlanFile file = test::must(read_plan_file(path));
  std::filesystem::remove(path);
  return file;
}

void expect_kept(const Error& error, double bound_us) {
  EXPECT_EQ(error.code(), Code::kInternal);
  const PlanFile file = kept_by(error);
  EXPECT_EQ(file.bound.us, bound_us);
  const auto report = check(file.problem, file.plan, file.predicted, file.bound.us);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, Violation::kBound);
}

TEST(SharedBound, HoldsEveryPlanAgainstTheHighestBound) {
  const Problem problem = chain();
  SharedBound bounds(problem);
  PlanResult first = test::must_plan("heft", problem);
  ASSERT_TRUE(bounds.add(first).ok());
  PlanResult second = first;
  second.planner = "other";
  // Within the solvers' tolerance.
  second.bound = {first.value_us * (1 + 1e-6), {"program", "HiGHS 1.15.1"}};
  ASSERT_TRUE(bounds.add(second).ok());
  EXPECT_EQ(bounds.best().us, second.bound.us);
  // Beyond it, although the plan with that bound is above it: the first planner's is not.
  second.value_us = first.value_us * 2;
  second.bound.us = first.value_us * 1.5;
  const Status status = bounds.add(second);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(
      status.error().to_string(),
      HasSubstr("(claimed by HiGHS 1.15.1: program) that planner other gives; one of the two is wrong"));
  expect_kept(status.error(), second.bound.us);
}

TEST(SharedBound, OfAPlannersOwnPlanIsHeldAgainstIt) {
  const Problem problem = chain();
  const PlanResult plan = test::must_plan("heft", problem);
  PlannerOutput output;
  output.plan = plan.plan;
  output.bound = Bound{plan.value_us + 1, {"wrong", "CP-SAT 9.15.6755"}};
  const auto result = verified_result("bad", problem, output, 0);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().to_string(), HasSubstr("(claimed by CP-SAT 9.15.6755: wrong); one of the two"));
  expect_kept(result.error(), plan.value_us + 1);
}

}  // namespace
}  // namespace heddle
