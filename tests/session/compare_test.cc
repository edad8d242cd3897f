// Several planners on one problem, and the checks of this machine.
#include "heddle/session/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/gap.h"
#include "heddle/report/plan_text.h"
#include "heddle/session/machine_checks.h"
#include "plan/plan_support.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

std::vector<const PlannerEntry*> planners_of(const std::vector<std::string>& names) {
  std::vector<const PlannerEntry*> planners;
  for (const auto& name : names) planners.push_back(planner_named(name).value());
  return planners;
}

TEST(ComparedPlanners, HaveOneBoundAndDoNotHideEachOther) {
  const auto graph =
      test::make_graph({{.name = "a", .bytes = 4}, {.name = "b", .inputs = {"a"}, .is_output = true}});
  const Problem problem = test::make_problem(graph, test::make_gpu_cluster(2), {{10, 20}, {20, 10}});
  const auto compared =
      compare_planners(problem, planners_of({"heft", "replicate", "cp-sat"}), {}, {}).value();
  ASSERT_EQ(compared.size(), 3);
  EXPECT_FALSE(compared[1].result.ok());  // it is for throughput
  const PlanResult &first = *compared[0].result, &exact = *compared[2].result;
  EXPECT_EQ(first.bound.us, exact.bound.us);
  EXPECT_NEAR(exact.bound.us, exact.value_us, 1e-3);
  EXPECT_DOUBLE_EQ(first.gap, relative_gap(first.value_us, exact.bound.us));
  EXPECT_THAT(comparison_text(session_of(problem), compared),
              AllOf(HasSubstr("heft"), HasSubstr("cp-sat"), HasSubstr("one checker for all")));
}

TEST(MachineChecks, FindSolversAndEngines) {
  const auto checks = check_machine();
  EXPECT_THAT(checks, Contains(AllOf(Field(&MachineCheck::name, "HiGHS"),
                                     Field(&MachineCheck::state, CheckState::kOk))));
  EXPECT_THAT(checks, Contains(AllOf(Field(&MachineCheck::name, "openvino"),
                                     Field(&MachineCheck::state, CheckState::kOk))));
}

}  // namespace
}  // namespace heddle
