#include "heddle/plan/robustness.h"

#include <gtest/gtest.h>

#include "heddle/plan/evaluator.h"
#include "plan_support.h"

namespace heddle {
namespace {

using test::make_cpu_cluster;
using test::make_graph;
using test::make_problem;

// The ops in their order on the devices given.
Plan planned(const Problem& problem, const std::vector<DeviceId>& devices) {
  Assignment assignment;
  assignment.device = devices;
  for (size_t op = 0; op < devices.size(); ++op) assignment.order.emplace_back(op);
  auto plan = build_plan(problem, assignment);
  EXPECT_TRUE(plan.ok()) << plan.error().to_string();
  return *plan;
}

TEST(Robustness, NamesTheDeviceAndTheCoreWhoseLossCostsMost) {
  const auto graph = make_graph({{"a", {}, 8, {}, true}, {"b", {}, 8, {}, true}});
  const auto problem = make_problem(graph, make_cpu_cluster({{0}, {1, 2}}), {{90, 1}, {1, 60}});
  const auto r = robustness(problem, planned(problem, {DeviceId(0), DeviceId(1)})).value();
  EXPECT_DOUBLE_EQ(r.value_us, 90);
  EXPECT_EQ(r.losses[0].worst.what, "c0");
  EXPECT_DOUBLE_EQ(r.losses[0].worst.value_us, 100);
  EXPECT_DOUBLE_EQ(r.losses[1].worst.value_us, 120);
  EXPECT_DOUBLE_EQ(r.losses[2].worst.value_us, 180);
  // Half of c0's only core; c1 without one of its two would take 120.
  ASSERT_TRUE(r.core.has_value());
  EXPECT_EQ(r.core->what, "core 0");
  EXPECT_DOUBLE_EQ(r.core->value_us, 180);
}

TEST(Robustness, OfAPlanThatTakesNoTimeNamesADevice) {
  const auto graph = make_graph({{"a", {}, 8}});
  const auto problem = make_problem(graph, make_cpu_cluster({{0}}), {{0}});
  const auto worst = worst_loss(problem, planned(problem, {DeviceId(0)}), .5).value();
  ASSERT_TRUE(worst.device.valid());
  EXPECT_EQ(worst.value_us, 0);
}

TEST(Robustness, ACoreIsTakenFromAllDevicesThatHaveIt) {
  const auto graph = make_graph({{"a", {}, 8}, {"b", {"a"}, 8, {}, true}});
  const auto problem = make_problem(graph, make_cpu_cluster({{0, 1}, {1}}), {{40, 99}, {99, 10}});
  const auto r = robustness(problem, planned(problem, {DeviceId(0), DeviceId(1)})).value();
  ASSERT_TRUE(r.core.has_value());
  EXPECT_EQ(r.core->what, "core 1");
  EXPECT_DOUBLE_EQ(r.core->value_us - r.value_us, 40 + 10);  // both take twice as long
}

TEST(Robustness, AMeasuredSlowdownReplacesTheRule) {
  const auto graph = make_graph({{"a", {}, 8, {}, true}, {"b", {}, 8, {}, true}});
  auto problem = make_problem(graph, make_cpu_cluster({{0}, {1, 2}}), {{30, 1}, {1, 60}});
  const Plan plan = planned(problem, {DeviceId(0), DeviceId(1)});
  const auto by_rule = robustness(problem, plan).value();
  EXPECT_FALSE(by_rule.core->measured);
  EXPECT_DOUBLE_EQ(by_rule.core->value_us, 120);
  const auto costs = std::make_shared<CostTable>(*problem.costs);
  costs->set_core_taken(DeviceId(1), 3);
  problem.costs = costs;
  const auto r = robustness(problem, plan).value();
  EXPECT_TRUE(r.core->measured);
  EXPECT_EQ(r.core->what, "core 1");
  EXPECT_DOUBLE_EQ(r.core->value_us, 180);
  EXPECT_DOUBLE_EQ(r.losses[2].worst.value_us, 120);  // a slower device is none with fewer cores
  // c0 has a figure by the rule: without its core it takes longest.
  costs->set_core_taken(DeviceId(1), 1);
  EXPECT_DOUBLE_EQ(robustness(problem, plan).value().core->value_us, 60);
  costs->scale(DeviceId(0), 3);
  EXPECT_EQ(robustness(problem, plan).value().core->what, "core 0");
  EXPECT_FALSE(robustness(problem, plan).value().core->measured);
}

TEST(Robustness, PlansOnGpusHaveNoCores) {
  const auto graph = make_graph({{"a", {}, 8, {}, true}});
  const auto problem = make_problem(graph, test::make_gpu_cluster(2), {{10, 20}});
  const auto r = robustness(problem, planned(problem, {DeviceId(0)})).value();
  EXPECT_FALSE(r.core.has_value());
  EXPECT_DOUBLE_EQ(r.losses[2].worst.value_us - r.value_us, 10);
}

TEST(Robustness, SlowerHardwareNeverHelpsAPlanForThroughputOrLatency) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const auto problem = test::random_problem(
        random, {.ops = 10, .objective = i % 2 == 0 ? Objective::kLatency : Objective::kThroughput});
    const Plan plan = test::random_plan(random, problem);
    const auto r = robustness(problem, plan);
    ASSERT_TRUE(r.ok()) << r.error().to_string();
    double last = r->value_us;
    for (const auto& loss : r->losses) {
      EXPECT_GE(loss.worst.value_us, last * (1 - 1e-12)) << i;
      last = loss.worst.value_us;
    }
    if (r->core) {
      EXPECT_GE(r->core->value_us, r->value_us * (1 - 1e-12)) << i;
    }
  }
}

}  // namespace
}  // namespace heddle
