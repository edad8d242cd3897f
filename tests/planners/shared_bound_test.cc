// A plan below a bound is an internal error, whoever made the bound, and the instance is kept.
#include "heddle/planners/shared_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "heddle/base/json.h"
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
  EXPECT_THAT(result.error().to_string(), HasSubstr("planner bad returned a plan of "));
  EXPECT_THAT(result.error().to_string(), HasSubstr("(claimed by CP-SAT 9.15.6755: wrong); one of the two"));
  expect_kept(result.error(), plan.value_us + 1);
}

// A plan of 11 us, held against a bound of 12 us.
Error wrong_bound() {
  const Problem problem = chain();
  PlannerOutput output;
  output.plan = test::must_plan("heft", problem).plan;
  output.bound = Bound{test::must_plan("heft", problem).value_us + 1, {"wrong", "CP-SAT 9.15.6755"}};
  return verified_result("bad", problem, output, 0).error();
}

TEST(SharedBound, TheKeptProblemIsTheWholeProblem) {
  const PlanFile kept = kept_by(wrong_bound());
  EXPECT_EQ(kept.planner, "bad");
  EXPECT_EQ(kept.bound.proof.text(), "claimed by CP-SAT 9.15.6755: wrong");
  const Problem problem = chain();
  PlanFile same = kept;
  same.problem = problem;
  EXPECT_EQ(plan_to_json(same).dump(), plan_to_json(kept).dump());
  for (const char* planner : {"heft", "auto"}) {
    const PlanResult before = test::must_plan(planner, problem),
                     again = test::must_plan(planner, kept.problem);
    EXPECT_EQ(again.value_us, before.value_us) << planner;
    EXPECT_EQ(again.bound.us, before.bound.us) << planner;
  }
}

// Wherever the instance cannot be kept, the error still has both numbers, and the reason.
void expect_not_kept(const std::string& reason) {
  const Error error = wrong_bound();
  EXPECT_EQ(error.code(), Code::kInternal);
  EXPECT_THAT(error.to_string(), HasSubstr("below the bound of "));
  EXPECT_THAT(error.to_string(),
              HasSubstr("one of the two is wrong; the plan could not be kept: below-bound-"));
  EXPECT_THAT(error.to_string(), HasSubstr(reason));
}

class WithoutAFile : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("not_kept_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  std::filesystem::path before_, folder_;
};

TEST_F(WithoutAFile, AFolderThatIsGoneIsNamed) {
  std::filesystem::remove_all(folder_);
  expect_not_kept("No such file or directory");
}

// As on a full disk: the file can be made, but nothing written to it.
TEST_F(WithoutAFile, AFullDiskIsNamedAndLeavesNoPart) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  expect_not_kept("File too large");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace heddle
