// Which prepared plan runs the next request.
#include "heddle/runtime/plan_switch.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Runs requests on plans that take these times; returns how many ran on each.
std::vector<int> run_requests(PlanSwitch& plans, const std::vector<double>& us, int requests) {
  std::vector<int> counts(us.size());
  for (int i = 0; i < requests; ++i) {
    const size_t plan = plans.next();
    ++counts[plan];
    plans.took(us[plan]);
  }
  return counts;
}

TEST(PlanSwitch, TheFastestPlanRunsAlmostAllRequests) {
  PlanSwitch plans(3);
  const auto counts = run_requests(plans, {30, 10, 20}, 1000);
  EXPECT_EQ(plans.active(), 1);
  EXPECT_EQ(plans.switches(), 0);
  EXPECT_GE(counts[1], 970);
  EXPECT_GE(counts[0], 3);  // all are known
  EXPECT_GE(counts[2], 3);
}

TEST(PlanSwitch, ChangesWhenAnotherPlanBecomesFasterAndBackAgain) {
  PlanSwitch plans(3);
  run_requests(plans, {10, 19, 25}, 100);
  EXPECT_EQ(plans.active(), 0);
  run_requests(plans, {30, 19, 25}, 300);  // a core is taken
  EXPECT_EQ(plans.active(), 1);
  run_requests(plans, {10, 19, 25}, 300);
  EXPECT_EQ(plans.active(), 0);
  EXPECT_GE(plans.switches(), 2);
  EXPECT_LE(plans.switches(), 3);  // the third plan may be active on the way
}

TEST(PlanSwitch, NeitherASmallGainNorOneFastRunChangesThePlan) {
  PlanSwitch plans(2);
  run_requests(plans, {100, 200}, 10);
  run_requests(plans, {100, 97}, 1000);
  EXPECT_EQ(plans.active(), 0);
  bool was_fast = false;
  for (int i = 0; i < 1000; ++i) {
    const bool fast = plans.next() == 1 && !was_fast;
    was_fast = fast || (was_fast && plans.next() == 1);
    plans.took(plans.next() == 0 ? 100 : fast ? 50 : 200);
  }
  EXPECT_EQ(plans.active(), 0);
  EXPECT_EQ(plans.switches(), 0);
}

TEST(PlanSwitch, OnePlanIsNeverLeft) {
  PlanSwitch plans(1);
  EXPECT_EQ(run_requests(plans, {10}, 200)[0], 200);
}

}  // namespace
}  // namespace heddle
