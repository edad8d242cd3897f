// The 72 published plans of PPipe: our evaluation of them, and our own plans for the same fleets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "fleet_support.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/ppipe_data.h"
#include "plan/baselines.h"

namespace heddle {
namespace {

class PpipeReferences : public testing::Test {
 protected:
  void SetUp() override {
    if (ppipe_folder().empty()) GTEST_SKIP() << "HEDDLE_SHARED has no data/ppipe";
    auto data = read_ppipe_data(ppipe_folder());
    ASSERT_TRUE(data.ok()) << data.error().to_string();
    auto references = read_ppipe_references(*data, ppipe_folder());
    ASSERT_TRUE(references.ok()) << references.error().to_string();
    data_ = std::move(*data);
    references_ = std::move(*references);
  }
  PpipeData data_;
  std::vector<PpipeReference> references_;
};

double relative(double a, double b) { return std::abs(a - b) / std::abs(b); }

TEST_F(PpipeReferences, AllPublishedPlansHoldAndHaveThePublishedRates) {
  ASSERT_EQ(references_.size(), 72u);
  for (const auto& r : references_) {
    EXPECT_LE(relative(r.plan.value, r.norm_rate), 1e-9) << r.plan_id;
    EXPECT_EQ(fleet_plan_problems(r.fleet, r.plan), std::vector<std::string>{}) << r.plan_id;
  }
}

TEST_F(PpipeReferences, TheExactPlannerIsNeverBelowPPipesOwnPlans) {
  for (const auto& r : references_) {
    if (r.algorithm != "v4") continue;
    const auto plan = plan_fleet(r.fleet, "ppipe-dp");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_GE(plan->value, r.norm_rate * (1 - 1e-9)) << r.plan_id;
    EXPECT_LE(plan->value, plan->bound * (1 + 1e-12)) << r.plan_id;
    if (std::getenv("HEDDLE_TEST_SHOW"))
      std::printf("%s %.6f %.6f %+.4f%% bound gap %.3f%% %.1f ms\n", r.plan_id.c_str(), plan->value,
                  r.norm_rate, 100 * (plan->value / r.norm_rate - 1), 100 * plan->gap(),
                  1e3 * plan->planning_s);
  }
}

TEST_F(PpipeReferences, NpGivesThePublishedNumbers) {
  for (const auto& r : references_) {
    if (r.algorithm != "bl") continue;
    const auto plan = plan_fleet(r.fleet, "np");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_LE(relative(plan->value, r.norm_rate), 1e-9) << r.plan_id;
  }
}

TEST_F(PpipeReferences, DartRGivesThePublishedNumbersFromThePublishedNpPlans) {
  std::map<std::string, const PpipeReference*> np;
  for (const auto& r : references_)
    if (r.algorithm == "bl") np[r.cluster + r.group] = &r;
  for (const auto& r : references_) {
    if (r.algorithm != "dart-r") continue;
    const FleetPlanOptions options;
    const FleetTask task{r.fleet, {}, {}, {}, {}, options};
    const auto models = dart_r_from(task, np.at(r.cluster + r.group)->plan.models);
    ASSERT_TRUE(models.ok()) << models.error().to_string();
    FleetPlan plan;
    plan.models = *models;
    evaluate_fleet_plan(r.fleet, plan);
    EXPECT_LE(relative(plan.value, r.norm_rate), 1e-9) << r.plan_id;
    EXPECT_EQ(fleet_plan_problems(r.fleet, plan), std::vector<std::string>{}) << r.plan_id;
    for (size_t m = 0; m < plan.models.size(); ++m)
      EXPECT_LE(relative(plan.models[m].rate_per_s, r.plan.models[m].rate_per_s), 1e-9)
          << r.plan_id << " " << m;
    const auto own = plan_fleet(r.fleet, "dart-r");
    ASSERT_TRUE(own.ok()) << own.error().to_string();
    if (std::getenv("HEDDLE_TEST_SHOW"))
      std::printf("%s own %.4f published %.4f\n", r.plan_id.c_str(), own->value, r.norm_rate);
  }
}

}  // namespace
}  // namespace heddle
