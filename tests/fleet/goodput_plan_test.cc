// Plans whose margins are chosen by simulation.
#include "heddle/fleet/goodput_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/fleet/fleet_check.h"

namespace heddle {
namespace {

Fleet mixed_fleet() { return read_fleet(HEDDLE_SOURCE_DIR "/examples/mixed-fleet.yaml").value(); }

GoodputPlanOptions few_requests() {
  GoodputPlanOptions o;
  o.goodput.requests = 3000;
  o.seeds = 1;
  return o;
}

TEST(GoodputPlan, ServesAtLeastWhatTheFleetsMarginsDoAndIsValid) {
  const Fleet fleet = mixed_fleet();
  for (const auto kind : {TrafficKind::kPoisson, TrafficKind::kBursty}) {
    auto options = few_requests();
    options.goodput.traffic.kind = kind;
    options.goodput.traffic.burst_s = .02;
    const auto found = plan_for_goodput(fleet, "auto", options);
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    EXPECT_GE(found->per_s, found->usual_per_s);
    EXPECT_GT(found->tried, 10);
    EXPECT_THAT(fleet_plan_problems(fleet, found->plan), testing::IsEmpty());
    EXPECT_GE(found->plan.bound, found->plan.value);
    if (kind != TrafficKind::kPoisson) continue;
    // The figure is that of the plan, on these arrivals.
    const double usual = plan_fleet(fleet, "auto")->value;
    std::vector<double> rates;
    for (const auto& m : fleet.models) rates.push_back(m.weight * usual);
    EXPECT_EQ(goodput(deploy(fleet, found->plan).value(), rates, options.goodput)->per_s, found->per_s);
    EXPECT_EQ(plan_for_goodput(fleet, "auto", options)->per_s, found->per_s);
  }
}

// Progress is reported after each plan; the first is the one with the fleet's margins.
TEST(GoodputPlan, WhenStoppedHasTheBestSoFar) {
  struct StopAfterOne final : ProgressSink {
    CancelToken token;
    void report(const ProgressUpdate& update) override {
      if (update.what == "planning for requests in time") token.cancel();
    }
  } sink;
  auto options = few_requests();
  options.planning.progress = &sink;
  options.planning.deadline = Deadline::never(sink.token);
  const auto found = plan_for_goodput(mixed_fleet(), "auto", options);
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->tried, 1);
  EXPECT_EQ(found->per_s, found->usual_per_s);
}

TEST(GoodputPlan, MarginsAreInThePlansFileAndChecked) {
  const Fleet fleet = mixed_fleet();
  FleetPlan plan = plan_fleet(fleet, "auto").value();
  EXPECT_FALSE(fleet_plan_from_json(to_json(plan, fleet), fleet)->models[0].margin_us);
  plan.models[0].margin_us = fleet.models[0].slo_us / 4;
  const auto read = fleet_plan_from_json(to_json(plan, fleet), fleet);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(read->models[0].margin_us, plan.models[0].margin_us);
  EXPECT_FALSE(read->models[1].margin_us);
  plan.models[0].margin_us = fleet.models[0].slo_us * .99;
  EXPECT_THAT(fleet_plan_problems(fleet, plan), testing::Contains(testing::HasSubstr("with the margin")));
}

TEST(GoodputPlan, RefusesOtherObjectives) {
  auto options = few_requests();
  options.planning.objective = FleetObjective::kCost;
  options.planning.load_per_s = 10;
  EXPECT_FALSE(plan_for_goodput(mixed_fleet(), "auto", options).ok());
}

}  // namespace
}  // namespace heddle
