// Plans for all cores and for fewer of them, and requests that run by the one that fits.
#include "heddle/session/adaptive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class AdaptivePlans : public test::SmallModelTest {
 protected:
  void SetUp() override {
    SmallModelTest::SetUp();
    settings_.variants.precisions = {"f32"};  // whose outputs are compared
    auto opened = open_session(model(), settings_, {});
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    session_ = std::move(*opened);
  }

  Session session_;
};

TEST_F(AdaptivePlans, EachKeepsToItsCoresAndAnswersLikeTheModel) {
  const auto devices = session_.problem.devices;
  const auto plans = plans_for_free_cores(session_, "heft", {}, {});
  ASSERT_TRUE(plans.ok()) << plans.error().to_string();
  EXPECT_EQ(session_.problem.devices, devices);  // as before
  EXPECT_EQ(plans->front().what, "all cores");
  for (const PreparedPlan& plan : *plans) {
    if (plan.what == "all cores") continue;
    std::set<int> used;
    for (const Segment& segment : plan.result.plan.segments)
      for (const int core : session_.problem.cluster->device(segment.device).cores) used.insert(core);
    for (const int core : used) EXPECT_THAT(plan.what, HasSubstr(std::to_string(core)));
  }
  const auto run = run_adaptive(session_, *plans, {.repeats = 5, .verify = true}, {});
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  EXPECT_TRUE(run->verified);
  EXPECT_TRUE(run->right);
  EXPECT_EQ(run->us.size(), 5u);
  size_t requests = 0;
  for (const auto& own : run->us_of) requests += own.size();
  EXPECT_EQ(requests, 5u);
}

TEST_F(AdaptivePlans, ARunThatWasStoppedHasTheRequestsSoFar) {
  const auto plans = plans_for_free_cores(session_, "heft", {}, {}).value();
  CancelToken cancel;
  Control control;
  control.cancel = cancel;
  cancel.cancel();
  const auto run = run_adaptive(session_, plans, {.repeats = 1000, .verify = false}, control);
  EXPECT_FALSE(run.ok());  // not one request ran
  EXPECT_EQ(run.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace heddle
