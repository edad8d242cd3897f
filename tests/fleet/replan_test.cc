// Re-planning keeps a fresh plan's value and moves no more devices. Also: explanations, the MILP file.
#include <gtest/gtest.h>

#include "fleet_support.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_explain.h"
#include "heddle/fleet/fleet_replan.h"

namespace heddle {
namespace {

struct Running {
  Fleet fleet;
  FleetPlan plan;
};

Running running(uint64_t seed) {
  Random random(seed);
  while (true) {
    auto fleet = random_fleet(random, {.models = 2, .max_count = 8, .share_levels = 2});
    auto plan = plan_fleet(fleet, "auto");
    if (plan.ok() && plan->value > 0) return {fleet, *plan};
  }
}

TEST(Replan, NothingMovesWhenNothingChanged) {
  const auto [fleet, plan] = running(1);
  const auto result = replan_fleet(fleet, plan, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->moved_devices, 0);
  EXPECT_GE(result->plan.value, plan.value * (1 - 1e-6));
}

TEST(Replan, KeepsTheFreshPlansValueAndMovesNoMore) {
  for (uint64_t seed = 2; seed < 8; ++seed) {
    auto [fleet, plan] = running(seed);
    fleet.classes[seed % 2].count += 2;
    fleet.models[0].weight *= 1.3;
    const auto fresh = plan_fleet(fleet, "auto");
    FleetPlanOptions options;
    options.deadline = Deadline::after_seconds(5);
    const auto result = replan_fleet(fleet, plan, options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(fleet_plan_problems(fleet, result->plan), std::vector<std::string>{});
    EXPECT_GE(result->plan.value, fresh->value * (1 - 1e-6));
    EXPECT_LE(result->moved_devices, result->moved_devices_fresh);
    for (const auto& m : result->moves) EXPECT_NE(m.before, m.after);
  }
}

TEST(Replan, ARunningPlanThatNoLongerFitsIsLeftBehind) {
  auto [fleet, plan] = running(9);
  for (auto& c : fleet.classes) c.count = 1;
  const auto result = replan_fleet(fleet, plan, {});
  if (!result.ok()) {
    EXPECT_EQ(result.error().code(), Code::kInfeasible);
    return;
  }
  EXPECT_TRUE(check_fleet_plan(fleet, result->plan).ok());
}

TEST(Explain, SaysWhatBindsAndWhatADeviceMoreBrings) {
  const auto [fleet, plan] = running(12);
  const auto why = explain_fleet_plan(fleet, plan, "auto", {});
  ASSERT_TRUE(why.ok()) << why.error().to_string();
  size_t binding = 0, pipelines = 0;
  for (const auto& m : plan.models) pipelines += m.pipelines.size();
  for (const auto& p : why->pools) {
    EXPECT_GT(p.busy, 0);
    EXPECT_LE(p.busy, 1 + 1e-9);
    binding += !p.binds.empty();
  }
  EXPECT_GE(binding, pipelines);
  for (const auto& p : why->pipelines) EXPECT_LE(p.latency_us, p.limit_us + 1e-3);
  for (const auto& c : why->classes) {
    EXPECT_LE(c.used, c.count);
    EXPECT_GE(c.with_one_more, plan.value * (1 - 1e-9));
  }
  EXPECT_NEAR(why->cost_per_million, why->cost_per_hour / 3600 / why->requests_per_s * 1e6, 1e-9);
}

// Devices that are named are as many as the class has; a class that is not there may have no price.
TEST(Explain, OneMoreOfNamedDevicesAndOfClassesWithoutAPrice) {
  auto [fleet, plan] = running(12);
  for (auto& c : fleet.classes) {
    c.cost_per_hour = 1;
    for (int64_t d = 0; d < c.count; ++d) c.devices.push_back("d" + std::to_string(d));
  }
  const auto why = explain_fleet_plan(fleet, plan, "auto", {});
  ASSERT_TRUE(why.ok()) << why.error().to_string();
  for (const auto& c : why->classes) EXPECT_GE(c.with_one_more, why->planned * (1 - 1e-9));
  fleet.classes.push_back({.name = "absent", .count = 0, .nic_bytes_per_s = 1e9});
  for (auto& m : fleet.models) m.latency_us.emplace_back(m.latency_us.front());
  FleetPlanOptions options;
  options.objective = FleetObjective::kCost;
  options.load_per_s = 1e-3;
  const auto cheap = plan_fleet(fleet, "auto", options);
  ASSERT_TRUE(cheap.ok()) << cheap.error().to_string();
  const auto costs = explain_fleet_plan(fleet, *cheap, "auto", options);
  ASSERT_TRUE(costs.ok()) << costs.error().to_string();
  EXPECT_TRUE(std::isnan(costs->classes.back().with_one_more));
  EXPECT_FALSE(std::isnan(costs->classes.front().with_one_more));
}

TEST(FleetPlans, WithoutTimeAreNotCalledInfeasible) {
  const auto [fleet, plan] = running(12);
  for (const char* planner : {"ppipe-columns", "auto"})
    for (const auto objective : {FleetObjective::kMaxMin, FleetObjective::kCost}) {
      FleetPlanOptions options;
      options.objective = objective;
      options.load_per_s = 1e-3;
      options.deadline = Deadline::after_seconds(0, {});
      const auto planned = plan_fleet(fleet, planner, options);
      if (planned.ok()) continue;
      EXPECT_EQ(planned.error().code(), Code::kCancelled) << planned.error().to_string();
    }
}

TEST(PpipeMilpFile, HoldsTheVariablesOfTheAppendix) {
  const auto [fleet, plan] = running(3);
  const auto lp = ppipe_milp_as_lp(fleet, {});
  ASSERT_TRUE(lp.ok()) << lp.error().to_string();
  // x_l, p_ldvbij, g_ldvbij, whole devices, the lowest normalised throughput.
  for (const char* name :
       {" x_0 ", " p_0_0_1_1_0_4", " g_0_0_1_1_0_4", " n_0_0_0", " z ", "Generals", "Binaries"})
    EXPECT_NE(lp->find(name), std::string::npos) << name;
  // Every row is named after its equation.
  for (const char* row : {"\n A2_eq15_0:", "\n A2_eq16_0_0:", "\n A2_eq18_",
                          "\n A2_eq21_0_0_1_1_0_4:", "\n A2_eq22_0_0_1_1_0_4:", "\n A2_eq23_whole_0_0_0:",
                          "\n A2_eq23_0:", "\n A2_eq27_0:", "\n A2_eq28_0_0:"})
    EXPECT_NE(lp->find(row), std::string::npos) << row;
  const auto rows = lp->substr(lp->find("Subject To\n"), lp->find("Bounds\n") - lp->find("Subject To\n"));
  for (size_t at = rows.find(':'); at != std::string::npos; at = rows.find(':', at + 1)) {
    const auto name = rows.substr(rows.rfind('\n', at) + 2, at - rows.rfind('\n', at) - 2);
    EXPECT_EQ(name.rfind("A2_eq", 0), 0u) << name;
  }
}

}  // namespace
}  // namespace heddle
