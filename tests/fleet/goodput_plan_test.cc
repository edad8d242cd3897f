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
    EXPECT_NEAR(goodput(deploy(fleet, found->plan).value(), rates, options.goodput)->per_s, found->per_s,
                .01 * found->per_s);
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

// Two recorded loads, one with short bursts of both models: the plan's figure is that of the load it serves worse.
TEST(GoodputPlan, CountsByTheLoadThatItServesWorse) {
  const Fleet fleet = mixed_fleet();
  const std::vector<double> rates(fleet.models.size(), 1500);
  Traffic bursty;
  bursty.kind = TrafficKind::kBursty;
  bursty.burst_s = .02;
  const auto even = make_arrivals({}, rates, 1, 1).value(),
             bursts = make_arrivals(bursty, rates, 1, 1).value();
  const auto found_for = [&](std::vector<GoodputLoad> loads) {
    auto options = few_requests();
    options.loads = std::move(loads);
    return plan_for_goodput(fleet, "auto", options).value();
  };
  const auto both = found_for({{.recorded = &even}, {.recorded = &bursts}});
  const auto deployment = deploy(fleet, both.plan).value();
  auto options = few_requests().goodput;
  double least = 1e9;
  for (const auto* arrivals : {&even, &bursts}) {
    options.recorded = arrivals;
    least = std::min(least, goodput(deployment, {}, options)->per_s);
  }
  EXPECT_NEAR(both.per_s, least, .01 * least);
  EXPECT_GE(found_for({{.recorded = &even}}).per_s, both.per_s);
  const std::vector<Arrival> none;
  auto empty = few_requests();
  empty.loads = {{.recorded = &none}};
  EXPECT_FALSE(plan_for_goodput(fleet, "auto", empty).ok());
}

TEST(Goodput, EndsWhereTheLeastLoadIsMissed) {
  const Fleet fleet = mixed_fleet();
  const auto deployment = deploy(fleet, plan_fleet(fleet, "auto").value()).value();
  const std::vector<double> rates(fleet.models.size(), 1000);
  auto options = few_requests().goodput;
  const double most = goodput(deployment, rates, options)->per_s;
  options.at_least = .9 * most;
  EXPECT_NEAR(goodput(deployment, rates, options)->per_s, most, .01 * most);
  options.at_least = 1.1 * most;
  EXPECT_EQ(goodput(deployment, rates, options)->per_s, 0);
}

TEST(GoodputPlan, RefusesOtherObjectives) {
  auto options = few_requests();
  options.planning.objective = FleetObjective::kCost;
  options.planning.load_per_s = 10;
  EXPECT_FALSE(plan_for_goodput(mixed_fleet(), "auto", options).ok());
}

}  // namespace
}  // namespace heddle
