// Fleet planners on random fleets, and on fleets small enough for brute force.
#include "heddle/fleet/fleet_planner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fleet_support.h"
#include "heddle/base/json.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_compare.h"
#include "plan/columns.h"

namespace heddle {
namespace {

Fleet one_model(double slo_us) {
  Fleet fleet;
  fleet.name = "tiny";
  fleet.classes = {{.name = "fast", .count = 1, .nic_bytes_per_s = 1e9, .cost_per_hour = 2, .watts = 200},
                   {.name = "slow", .count = 3, .nic_bytes_per_s = 1e9, .cost_per_hour = 1, .watts = 100}};
  FleetModel m;
  m.name = "net";
  m.blocks = 2;
  m.latency_us = {{{{1000, 1000}}}, {{{3000, 6000}}}};
  m.cut_bytes = {1000, 1e6, 1000};  // 1 ms between servers
  m.slo_us = slo_us;
  fleet.models = {m};
  return fleet;
}

TEST(FleetPlanner, PoolsUnequalDevicesWhereNeitherClassAloneServesAsMuch) {
  // slow, then fast: 3 / 3 ms = 1000/s and 1 / 1 ms = 1000/s; latency 3 + 1 + 1 ms.
  const auto plan = plan_fleet(one_model(5000), "ppipe-dp");
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_DOUBLE_EQ(plan->value, 1000);
  ASSERT_EQ(plan->models[0].pipelines.size(), 1u);
  const auto& p = plan->models[0].pipelines[0].partitions;
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(p[0].device_class, 1);
  EXPECT_EQ(p[0].count, 3);
  EXPECT_EQ(p[1].device_class, 0);
  EXPECT_EQ(p[1].count, 1);
}

TEST(FleetPlanner, ComparedPlansHaveTheBestBoundOfAll) {
  const auto fleet = one_model(5000);
  int asked = 0;
  const auto options = [&asked]() -> Result<FleetPlanOptions> {
    ++asked;
    return FleetPlanOptions();
  };
  const auto plans = compare_fleet_planners(fleet, {"np", "ppipe-dp", "auto"}, options);
  ASSERT_TRUE(plans.ok()) << plans.error().to_string();
  ASSERT_EQ(plans->size(), 3u);
  EXPECT_EQ(asked, 3);
  for (const auto& [planner, plan] : *plans) {
    ASSERT_TRUE(plan.ok()) << planner << ": " << plan.error().to_string();
    EXPECT_DOUBLE_EQ(plan->bound, 1000) << planner;  // as of the planner that proved it
    EXPECT_LE(plan->value, plan->bound) << planner;
  }
  EXPECT_DOUBLE_EQ((*plans)[1].plan->value, 1000);
  // What no planner can do is said for each; what a planner does not know is an error.
  const auto late = compare_fleet_planners(one_model(1500), {"np", "ppipe-dp"}, options);
  ASSERT_TRUE(late.ok()) << late.error().to_string();
  for (const auto& [planner, plan] : *late) EXPECT_EQ(plan.error().code(), Code::kInfeasible) << planner;
  EXPECT_FALSE(compare_fleet_planners(fleet, {"no such planner"}, options).ok());
}

TEST(FleetPlanner, ADeadlineThatTheMixMissesLeavesTheFastDeviceAlone) {
  const auto plan = plan_fleet(one_model(4999), "ppipe-dp");
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  EXPECT_DOUBLE_EQ(plan->value, 500);
}

TEST(FleetPlanner, SaysWhichModelIsTooSlowOnWhichClass) {
  const auto plan = plan_fleet(one_model(1500), "auto");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code(), Code::kInfeasible);
  EXPECT_EQ(plan.error().to_string(),
            "model 'net': no pipeline meets its deadline: on its fastest class 'fast' one request takes 2.00 "
            "ms, the "
            "SLO of 1.50 ms less the margin of 0 us leaves 1.50 ms");
}

TEST(FleetPlanner, LeastCostUsesTheCheapestDevicesThatServeTheLoad) {
  FleetPlanOptions options;
  options.objective = FleetObjective::kCost;
  options.load_per_s = 100;
  auto fleet = one_model(20000);
  for (const char* planner : {"ppipe-dp", "ppipe-columns", "ppipe-milp", "auto"}) {
    const auto plan = plan_fleet(fleet, planner, options);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_DOUBLE_EQ(plan->value, 1) << planner;  // one slow device serves 111/s
  }
  options.load_per_s = 112;
  EXPECT_DOUBLE_EQ(plan_fleet(fleet, "ppipe-dp", options)->value, 2);
  options.load_per_s = 5000;
  EXPECT_EQ(plan_fleet(fleet, "ppipe-dp", options).error().code(), Code::kInfeasible);
}

TEST(FleetPlanner, GoodputStopsAtTheLoad) {
  FleetPlanOptions options;
  options.objective = FleetObjective::kGoodput;
  options.load_per_s = 400;
  for (const char* planner : {"ppipe-dp", "ppipe-columns", "ppipe-milp"}) {
    const auto plan = plan_fleet(one_model(5000), planner, options);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_NEAR(plan->value, 400, 1e-6) << planner;
    EXPECT_NEAR(plan->bound, 400, 1e-6) << planner;
  }
}

TEST(FleetPlanner, RefusesWhatMakesNoSense) {
  auto fleet = one_model(5000);
  EXPECT_EQ(
      plan_fleet(fleet, "ppipe-pd").error().to_string(),
      "no planner of fleets is named 'ppipe-pd' (did you mean 'ppipe-dp'?); there are 'auto', 'ppipe-dp', "
      "'ppipe-columns', 'ppipe-milp', 'np' and 'dart-r'");
  FleetPlanOptions options;
  options.objective = FleetObjective::kGoodput;
  EXPECT_EQ(plan_fleet(fleet, "auto", options).error().code(), Code::kInvalidInput);
  options.load_per_s = NAN;
  EXPECT_EQ(plan_fleet(fleet, "auto", options).error().code(), Code::kInvalidInput);
  options.load_per_s = 10;
  options.objective = FleetObjective::kCost;
  fleet.classes[1].cost_per_hour = 0;
  EXPECT_EQ(plan_fleet(fleet, "auto", options).error().to_string(),
            "class 'slow' has no cost_per_hour; the objective cost needs it of every class with devices");
  fleet.classes[0].count = fleet.classes[1].count = 0;
  EXPECT_EQ(plan_fleet(fleet, "auto").error().code(), Code::kInvalidInput);
}

// The best value over all pool sizes of all columns, by depth-first search over columns; whole devices only.
double brute_force(const Fleet& fleet) {
  const auto columns = all_columns(fleet, rules_of(fleet), {});
  EXPECT_TRUE(columns.ok());
  // best[m] for the remaining devices, by trying each column's pool sizes again and again.
  std::function<double(size_t, std::vector<int64_t>)> alone = [&](size_t m, std::vector<int64_t> left) {
    double best = 0;
    for (const auto& column : (*columns)[m]) {
      std::array<int64_t, kMaxPartitions> counts{};
      std::function<void(int, std::vector<int64_t>)> pools = [&](int k, std::vector<int64_t> rest) {
        if (k == column.stages) {
          best = std::max(best, column.rate(counts) + alone(m, rest));
          return;
        }
        const auto c = static_cast<size_t>(column.stage[static_cast<size_t>(k)].device_class);
        for (int64_t n = 1; n <= rest[c]; ++n) {
          auto after = rest;
          after[c] -= n;
          counts[static_cast<size_t>(k)] = n;
          pools(k + 1, after);
        }
      };
      pools(0, left);
    }
    return best;
  };
  double best = 0;
  const auto a = fleet.classes[0].count, b = fleet.classes.size() > 1 ? fleet.classes[1].count : 0;
  for (int64_t i = 0; i <= a; ++i)
    for (int64_t j = 0; j <= b; ++j)
      best = std::max(best, std::min(alone(0, {i, j}) / fleet.models[0].weight,
                                     alone(1, {a - i, b - j}) / fleet.models[1].weight));
  return best;
}

TEST(FleetPlanner, IsOptimalOnTinyFleetsOfWholeDevices) {
  Random random(7);
  int planned = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto fleet = random_fleet(random, {.blocks = 3, .max_count = 2, .batches = 1});
    const auto plan = plan_fleet(fleet, "ppipe-dp");
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().code(), Code::kInfeasible) << plan.error().to_string();
      continue;
    }
    ++planned;
    const double best = brute_force(fleet);
    EXPECT_NEAR(plan->value, best, 1e-9 * best) << trial;
    EXPECT_NEAR(plan->bound, best, 1e-9 * best) << trial;
  }
  EXPECT_GE(planned, 20);
}

TEST(FleetPlanner, TheExactPlannerReachesTheProvenOptimumOfTheColumnMilp) {
  Random random(11);
  int compared = 0, equal = 0;
  for (int trial = 0; trial < 24; ++trial) {
    const auto fleet = random_fleet(
        random,
        {.models = 2, .blocks = 4, .max_count = 5, .share_levels = trial % 3 == 0 ? 1 : 3, .batches = 2});
    const auto exact = plan_fleet(fleet, "ppipe-dp");
    FleetPlanOptions prove;
    prove.prove = true;
    prove.deadline = Deadline::after_seconds(10);
    const auto milp = plan_fleet(fleet, "ppipe-columns", prove);
    ASSERT_EQ(exact.ok(), milp.ok());
    if (!exact.ok()) continue;
    EXPECT_LE(exact->value, milp->bound * (1 + 1e-6)) << trial;
    EXPECT_LE(milp->value, exact->bound * (1 + 1e-6)) << trial;
    if (milp->gap() > 2e-4) continue;
    ++compared;
    if (exact->value >= milp->value * (1 - 2e-4)) ++equal;
    // The tables ignore sharing by three pipelines; this costs little, even with a handful of devices.
    EXPECT_GE(exact->value, milp->value * 0.9) << trial;
  }
  EXPECT_GE(compared, 8);
  EXPECT_GE(equal, compared * 3 / 4);
}

TEST(FleetPlanner, EveryPlannersPlanHoldsAndNoneIsBeyondTheBound) {
  Random random(3);
  for (int trial = 0; trial < 12; ++trial) {
    const auto fleet = random_fleet(random, {.classes = 1 + trial % 4,
                                             .models = 1 + trial % 3,
                                             .max_count = 6,
                                             .share_levels = 1 + trial % 4,
                                             .max_partitions = 1 + trial % 3});
    double best = 0, bound = INFINITY;
    for (const auto& planner : fleet_planners()) {
      FleetPlanOptions options;
      options.deadline = Deadline::after_seconds(5);
      const auto plan = plan_fleet(fleet, planner.name, options);
      if (!plan.ok()) {
        EXPECT_TRUE(plan.error().code() == Code::kInfeasible || plan.error().code() == Code::kUnsupported ||
                    plan.error().code() == Code::kCancelled)
            << planner.name << ": " << plan.error().to_string();
        continue;
      }
      EXPECT_EQ(fleet_plan_problems(fleet, *plan), std::vector<std::string>{}) << planner.name;
      best = std::max(best, plan->value);
      bound = std::min(bound, plan->bound);
    }
    EXPECT_LE(best, bound * (1 + 1e-6)) << trial;
  }
}

TEST(FleetPlanner, LargeFleetsComeWithinAFractionOfTheBound) {
  Random random(5);
  auto fleet =
      random_fleet(random, {.classes = 4, .models = 3, .blocks = 6, .share_levels = 4, .batches = 4});
  for (auto& m : fleet.models) m.margin_us = 0, m.slo_us *= 3;
  for (const int64_t count : {1000, 25000}) {
    for (auto& c : fleet.classes) c.count = count;
    const auto plan = plan_fleet(fleet, "auto");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_LE(plan->gap(), 0.01) << count;
  }
}

TEST(FleetPlanner, TheSameFleetGivesTheSamePlan) {
  Random random(9);
  const auto fleet = random_fleet(random, {.classes = 2, .models = 3, .max_count = 12, .share_levels = 2});
  const auto a = plan_fleet(fleet, "auto"), b = plan_fleet(fleet, "auto");
  ASSERT_EQ(a.ok(), b.ok());
  if (!a.ok()) GTEST_SKIP();
  EXPECT_EQ(to_json(*a, fleet)["models"], to_json(*b, fleet)["models"]);
}

}  // namespace
}  // namespace heddle
