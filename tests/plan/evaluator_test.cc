#include "heddle/plan/evaluator.h"

#include <gtest/gtest.h>

#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

Assignment devices_in_order(const std::vector<int>& devices) {
  Assignment a;
  for (size_t v = 0; v < devices.size(); ++v) {
    a.device.emplace_back(devices[v]);
    a.order.emplace_back(v);
  }
  return a;
}

std::string findings(const CheckReport& report) {
  std::string text;
  for (const Finding& f : report.findings)
    text += std::string(violation_name(f.kind)) + ": " + f.message + "\n";
  return text;
}

// a (3 us devices_in_order g0) -> b (4 us devices_in_order g1), tensor of 10 bytes. The route is pcie0 back
// and pcie1 forth: latency 2 us and 10 bytes at 1 byte/us, so 12 us. a: 0-3, transfer: 3-15, b: 15-19.
TEST(Evaluator, AddsATransferBetweenTwoDevices) {
  const Problem p =
      make_problem(make_graph({{"a", {}, 10}, {"b", {"a"}, 0}}), make_gpu_cluster(2), {{3, 3}, {4, 4}});
  const auto plan = build_plan(p, devices_in_order({0, 1}));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(t->start_us, (std::vector<double>{0, 3, 15}));
  EXPECT_EQ(t->finish_us, (std::vector<double>{3, 15, 19}));
  EXPECT_EQ(t->makespan_us, 19);
  EXPECT_EQ(critical_path(*t), (std::vector<StepId>{StepId(0), StepId(1), StepId(2)}));
  // Resources: g0 3, g1 4, and the transfer's 12 us devices_in_order both engines and both links.
  EXPECT_EQ(t->period_us, 12);
  EXPECT_EQ(t->device_busy_us, (std::vector<double>{3, 4}));
  ASSERT_EQ(t->resources.size(), 6u);
  EXPECT_EQ(t->resources[0].name, "device g0");
  EXPECT_EQ(t->resources[2].name, "engine g0 out");
  EXPECT_EQ(t->resources[3].name, "engine g1 in");
  EXPECT_EQ(t->resources[4].name, "link pcie0 <");
  EXPECT_EQ(t->resources[5].name, "link pcie1 >");
  // g0 holds a.out from 0 until it is sent, g1 from 3 until b has read it.
  EXPECT_EQ(t->peak_memory_bytes, (std::vector<int64_t>{10, 10}));
}

// On one device there is no step between a and b: 3 + 4.
TEST(Evaluator, TransfersNothingOnOneDevice) {
  const Problem p =
      make_problem(make_graph({{"a", {}, 10}, {"b", {"a"}, 0}}), make_gpu_cluster(2), {{3, 3}, {4, 4}});
  const auto plan = build_plan(p, devices_in_order({0, 0}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(evaluate(p, *plan)->makespan_us, 7);
}

// One tensor, two readers devices_in_order g1: one transfer. a 0-1, transfer 1-8 (2 + 5), b 8-10, c 10-13.
TEST(Evaluator, SendsATensorOncePerDevice) {
  const Problem p = make_problem(make_graph({{"a", {}, 5}, {"b", {"a"}, 0}, {"c", {"a"}, 0}}),
                                 make_gpu_cluster(2), {{1, 1}, {2, 2}, {3, 3}});
  const auto plan = build_plan(p, devices_in_order({0, 1, 1}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->steps.size(), 4u);
  EXPECT_EQ(evaluate(p, *plan)->makespan_us, 13);
}

// Two tensors leave g0 for g1 and g2 at 1 us; with engines of their own (2 per device) they share g0's out
// engine and link, so the second starts when the first is done: 1-8 and 8-15. Without any contention both go
// 1-8.
TEST(Evaluator, LinksAndEnginesServeOneTransferAtATime) {
  auto graph = make_graph({{"a", {}, 5}, {"b", {"a"}, 0}, {"c", {"a"}, 0}});
  Problem p = make_problem(graph, make_gpu_cluster(3), {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}});
  EXPECT_EQ(evaluate(p, *build_plan(p, devices_in_order({0, 1, 2})))->makespan_us, 18);  // c: 15-18
  p.execution = {false, false};
  EXPECT_EQ(evaluate(p, *build_plan(p, devices_in_order({0, 1, 2})))->makespan_us, 11);  // c: 8-11
  p.execution = {false, true};
  EXPECT_EQ(evaluate(p, *build_plan(p, devices_in_order({0, 1, 2})))->makespan_us, 18);  // the engine alone
}

// c0 = {0}, c1 = {1}, c2 = {0, 1}: x devices_in_order c0 and y devices_in_order c1 run at once, z
// devices_in_order c2 waits for both, w devices_in_order c0 waits for z. x 0-4, y 0-6, z 6-8, w 8-9. Tensors
// in one memory without links are free.
TEST(Evaluator, DevicesThatShareCoresExcludeEachOther) {
  auto graph = make_graph({{"x", {}, 9}, {"y", {}, 9}, {"z", {}, 9}, {"w", {"x"}, 9}});
  const Problem p = make_problem(graph, make_cpu_cluster({{0}, {1}, {0, 1}}),
                                 {{4, 4, 4}, {6, 6, 6}, {2, 2, 2}, {1, 1, 1}}, Objective::kLatency);
  const auto plan = build_plan(p, devices_in_order({0, 1, 2, 0}));
  ASSERT_TRUE(plan.ok());
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->makespan_us, 9);
  // Core 0 serves c0 (5) and c2 (2), core 1 serves c1 (6) and c2 (2).
  EXPECT_EQ(t->period_us, 8);
  EXPECT_EQ(t->resources[3].name, "cores h 0");
  EXPECT_EQ(t->resources[3].busy_us, 7);
  EXPECT_TRUE(check(p, *plan, *t).ok()) << findings(check(p, *plan, *t));
}

// Cold devices_in_order one GPU: load a (1 + 10 us), then load b (1 + 20) while a runs (5). a 11-16, b's load
// 11-32, b 32-39.
TEST(Evaluator, ColdStartOverlapsLoadsWithRuns) {
  auto graph = make_graph({{"a", {}, 4, {{"wa", 10}}}, {"b", {"a"}, 4, {{"wb", 20}}}});
  const Problem p = make_problem(graph, make_gpu_cluster(1), {{5}, {7}}, Objective::kColdLatency);
  const auto plan = build_plan(p, devices_in_order({0, 0}));
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->makespan_us, 39);
  EXPECT_EQ(t->period_us, 12);  // without loads: a + b
  // From 32 devices_in_order: both parameters (30), a's tensor (4) and b's (4).
  EXPECT_EQ(t->peak_memory_bytes, (std::vector<int64_t>{38}));
  EXPECT_TRUE(check(p, *plan, *t).ok()) << findings(check(p, *plan, *t));
}

// A shared parameter is loaded once per device.
TEST(Evaluator, ColdStartLoadsASharedParameterOnce) {
  auto graph = make_graph({{"a", {}, 4, {{"w", 10}}}, {"b", {"a"}, 4, {{"w", 10}}}});
  const Problem p = make_problem(graph, make_gpu_cluster(1), {{5}, {7}}, Objective::kColdLatency);
  const auto plan = build_plan(p, devices_in_order({0, 0}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->steps.size(), 3u);
  EXPECT_EQ(evaluate(p, *plan)->makespan_us, 23);
}

// A plan may bring a route of its own: here g0 -> h -> g1 by name, the same as the cluster's.
TEST(Evaluator, FollowsARouteOfThePlan) {
  const Problem p =
      make_problem(make_graph({{"a", {}, 10}, {"b", {"a"}, 0}}), make_gpu_cluster(2), {{3, 3}, {4, 4}});
  auto plan = build_plan(p, devices_in_order({0, 1}));
  plan->routes = {{{LinkId(0), false}, {LinkId(1), true}}};
  plan->steps[1].route = 0;
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(t->makespan_us, 19);
  EXPECT_TRUE(check(p, *plan, *t).ok());
  plan->routes[0][1].forward = false;
  EXPECT_FALSE(evaluate(p, *plan).ok());
}

// Two replicas with a third and two thirds of the requests: g0 is busy 12 / 3 = 4, g1 12 * 2 / 3 = 8 per
// request.
TEST(Evaluator, LanesShareTheRequests) {
  const Problem p = make_problem(make_graph({{"a", {}, 1}, {"b", {"a"}, 1}}), make_gpu_cluster(2),
                                 {{5, 5}, {7, 7}}, Objective::kThroughput);
  const auto plan = build_plan(p, {{devices_in_order({0, 0}), 1.0 / 3}, {devices_in_order({1, 1}), 2.0 / 3}});
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_DOUBLE_EQ(t->period_us, 8);
  EXPECT_EQ(t->makespan_us, 12);
  EXPECT_EQ(objective_us(p, *t), t->period_us);
  EXPECT_TRUE(check(p, *plan, *t).ok()) << findings(check(p, *plan, *t));
}

TEST(Evaluator, RefusesMalformedPlansWithoutCrashing) {
  const Problem p =
      make_problem(make_graph({{"a", {}, 10}, {"b", {"a"}, 0}}), make_gpu_cluster(2), {{3, 3}, {4, 4}});
  const Plan good = *build_plan(p, devices_in_order({0, 1}));
  const auto refused = [&](auto change) {
    Plan plan = good;
    change(plan);
    return !evaluate(p, plan).ok();
  };
  EXPECT_TRUE(refused([](Plan& x) { x.steps[0].segment = SegmentId(7); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[0].segment = SegmentId(); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[1].tensor = TensorId(99); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[1].to = DeviceId(5); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[1].route = 3; }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[1].route = -2; }));
  EXPECT_TRUE(refused([](Plan& x) { x.segments[0].ops = {}; }));
  EXPECT_TRUE(refused([](Plan& x) { x.segments[0].ops = {OpId(40)}; }));
  EXPECT_TRUE(refused([](Plan& x) { x.segments[0].device = DeviceId(40); }));
  EXPECT_TRUE(refused([](Plan& x) { x.segments[0].lane = 1; }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps.erase(x.steps.begin() + 1); }));  // no transfer
  EXPECT_TRUE(refused([](Plan& x) { x.steps.pop_back(); }));                  // b never runs
  EXPECT_TRUE(refused([](Plan& x) { std::swap(x.steps[0], x.steps[1]); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps.push_back(x.steps[0]); }));
  EXPECT_TRUE(refused([](Plan& x) { x.steps[0].kind = StepKind::kLoad; }));
  EXPECT_TRUE(refused([](Plan& x) { x.lane_shares = {}; }));
  EXPECT_TRUE(refused([](Plan& x) { x.lane_shares = {0.5}; }));
  EXPECT_TRUE(refused([](Plan& x) { x.lane_shares = {0.5, 0.5}; }));
}

class EvaluatorOnRandomPlans : public testing::TestWithParam<Objective> {};

TEST_P(EvaluatorOnRandomPlans, AgreesWithTheNaiveSimulatorAndPassesTheChecker) {
  Random random(11);
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(1, 14)), .max_devices = 5};
    shape.objective = GetParam();
    const Problem p = random_problem(random, shape);
    ASSERT_TRUE(validate(p).ok());
    const Plan plan = random_plan(random, p);
    if (plan.segments.empty()) continue;
    const auto t = evaluate(p, plan);
    ASSERT_TRUE(t.ok()) << round << ": " << t.error().to_string();
    const NaiveTimes naive = naive_times(p, plan);
    ASSERT_EQ(t->start_us, naive.start) << round;
    ASSERT_EQ(t->finish_us, naive.finish) << round;
    ASSERT_EQ(t->makespan_us, naive.makespan) << round;
    const CheckReport report = check(p, plan, *t);
    ASSERT_TRUE(report.ok()) << round << ": " << findings(report);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST_P(EvaluatorOnRandomPlans, GivesTheSameTimesWhenUsedAgain) {
  Random random(12);
  const Problem p = random_problem(random, {.ops = 14, .max_devices = 4, .objective = GetParam()});
  Evaluator evaluator(p);
  for (int round = 0; round < 30; ++round) {
    const Plan plan = random_plan(random, p);
    if (plan.segments.empty()) continue;
    const auto again = evaluator.evaluate(plan), fresh = evaluate(p, plan);
    ASSERT_TRUE(again.ok() && fresh.ok());
    ASSERT_EQ(again->finish_us, fresh->finish_us);
    ASSERT_EQ(again->period_us, fresh->period_us);
    ASSERT_EQ(again->peak_memory_bytes, fresh->peak_memory_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, EvaluatorOnRandomPlans,
                         testing::Values(Objective::kLatency, Objective::kColdLatency,
                                         Objective::kThroughput),
                         [](const auto& i) { return objective_test_name(i.param); });

}  // namespace
}  // namespace heddle::test
