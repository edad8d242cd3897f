#include "heddle/plan/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "brute_force.h"
#include "heddle/base/units.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

// a -> b -> c on devices that are fast for different ops, 10-byte tensors (12 us a move): staying costs 4 + 6
// + 4 = 14 on g0 and 2 + 9 + 9 = 20 on g1; with free moves 2 + 6 + 4 = 12, but a move costs 12, so the path
// bound is 14.
TEST(LowerBound, CountsTheMovesThatAPathCannotAvoid) {
  auto graph = make_graph({{"a", {}, 10}, {"b", {"a"}, 10}, {"c", {"b"}, 0}});
  const Problem p = make_problem(graph, make_gpu_cluster(2), {{4, 2}, {6, 9}, {4, 9}});
  EXPECT_NEAR(lower_bound(p).us, 14, 1e-6);
}

// Eight independent ops of 3 us on two equal devices: 12.
TEST(LowerBound, DividesTheAreaAmongEqualDevices) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 8; ++i) ops.push_back({"o" + std::to_string(i), {}, 1});
  const Problem p =
      make_problem(make_graph(ops), make_gpu_cluster(2), std::vector<std::vector<double>>(8, {3, 3}));
  EXPECT_NEAR(lower_bound(p).us, 12, 1e-3);
  EXPECT_LE(lower_bound(p).us, 12);
}

// One device of two cores or two of one core, each op 2 us on a core and 1 on both: cores {0}, {1}, {0, 1}.
// Per core and op 1 us whichever way, so eight ops take 8 us; counting the three devices apart would give 4.
TEST(LowerBound, KnowsThatDevicesShareCores) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 8; ++i) ops.push_back({"o" + std::to_string(i), {}, 1});
  const Problem p = make_problem(make_graph(ops), make_cpu_cluster({{0}, {1}, {0, 1}}),
                                 std::vector<std::vector<double>>(8, {2, 2, 1}));
  EXPECT_NEAR(lower_bound(p).us, 8, 1e-3);
  EXPECT_LE(lower_bound(p).us, 8);
}

// s (10 us) feeds eight ops of 3 us that feed e (10 us), tensors of no bytes but 2 us latency: head 10, tail
// 10, and an area of 12 on two devices give 32. The device without s and e has 4 us less, for moves there and
// back: x + (x - 4) = 24 gives 14 between s and e, and 34 together.
TEST(LowerBound, AddsHeadAndTailToTheArea) {
  std::vector<OpSpec> ops{{"s", {}, 0}};
  std::vector<std::vector<double>> times{{10, 10}};
  OpSpec e{"e", {}, 0};
  for (int i = 0; i < 8; ++i) {
    ops.push_back({"o" + std::to_string(i), {"s"}, 0});
    times.push_back({3, 3});
    e.inputs.push_back("o" + std::to_string(i));
  }
  ops.push_back(e);
  times.push_back({10, 10});
  const Problem p = make_problem(make_graph(ops), make_gpu_cluster(2), times);
  const Bound b = lower_bound(p);
  EXPECT_NEAR(b.us, 34, 0.1);
  EXPECT_LE(b.us, 34);
  EXPECT_EQ(b.proof.reason, "critical path over fork-join blocks");
}

// Cold, two GPUs behind one half-duplex bus: 6 parameters of 10 bytes all cross it: at least 60 us.
TEST(LowerBound, CountsParametersOverTheSharedBus) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 6; ++i)
    ops.push_back({"o" + std::to_string(i), {}, 1, {{"w" + std::to_string(i), 10}}});
  const Problem p = make_problem(make_graph(ops), make_gpu_cluster(2, 2, /*with_bus=*/true),
                                 std::vector<std::vector<double>>(6, {1, 1}), Objective::kColdLatency);
  EXPECT_GE(lower_bound(p).us, 59.9);
  EXPECT_LE(lower_bound(p).us, 67);  // 6 loads of 11 us, then 1
}

// Two GPUs on one full-duplex bus, one's link written from the host and the other's to it: what leaves the
// host takes both directions of the bus, so that both load at once, three times 11 us, and the last op
// takes 1.
TEST(LowerBound, CountsBothDirectionsOfAFullDuplexBus) {
  ClusterBuilder builder("two");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  const BusId bus = builder.add_bus({.name = "root", .bytes_per_s = 0, .duplex = Duplex::kFull});
  for (int i = 0; i < 2; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = "g";
    d.host = host;
    const DeviceId id = builder.add_device(d);
    const NodeId ends[] = {builder.host_node(host), builder.device_node(id)};
    builder.add_link({.name = "l" + std::to_string(i),
                      .a = ends[i],
                      .b = ends[1 - i],
                      .bytes_per_s = 1e6,
                      .latency_us = 1,
                      .duplex = Duplex::kFull,
                      .bus = bus});
  }
  std::vector<OpSpec> ops;
  Assignment a;
  for (size_t i = 0; i < 6; ++i) {
    ops.push_back({"o" + std::to_string(i), {}, 1, {{"w" + std::to_string(i), 10}}});
    a.order.emplace_back(i);
    a.device.emplace_back(i % 2);
  }
  const Problem p = make_problem(make_graph(ops), *builder.build(),
                                 std::vector<std::vector<double>>(6, {1, 1}), Objective::kColdLatency);
  const auto plan = build_plan(p, a);
  ASSERT_TRUE(plan.ok());
  const auto timeline = evaluate(p, *plan);
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->makespan_us, 34, 1e-6);
  EXPECT_LE(lower_bound(p).us, timeline->makespan_us);
}

// Ten ops with 10 bytes each; the fast GPU holds 50 bytes, so five ops run on the other, ten times slower.
TEST(LowerBound, CountsOpsThatMemoryForcesElsewhere) {
  ClusterBuilder builder("two");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  for (int i = 0; i < 2; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = d.name;
    d.host = host;
    d.memory_bytes = i == 0 ? 50 : 1000;
    const DeviceId id = builder.add_device(d);
    builder.add_link({.name = "l" + std::to_string(i),
                      .a = builder.host_node(host),
                      .b = builder.device_node(id),
                      .bytes_per_s = 1e9,
                      .latency_us = 0.01,
                      .duplex = Duplex::kFull,
                      .bus = {}});
  }
  std::vector<OpSpec> ops;
  for (int i = 0; i < 10; ++i)
    ops.push_back({"o" + std::to_string(i), {}, 0, {{"w" + std::to_string(i), 10}}});
  const Problem p =
      make_problem(make_graph(ops), *builder.build(), std::vector<std::vector<double>>(10, {1, 10}));
  const Bound b = lower_bound(p);
  EXPECT_LE(b.us, 50);
  EXPECT_GE(b.us, 49);  // without the limit it would be 100 / 11
  EXPECT_NE(b.proof.reason.find("memory"), std::string::npos);
}

TEST(LowerBound, IsTheSameEachTime) {
  Random random(5);
  for (int i = 0; i < 10; ++i) {
    const Problem p = random_problem(random, {.ops = 30, .max_devices = 5});
    EXPECT_EQ(lower_bound(p).us, lower_bound(p).us);
  }
}

TEST(LowerBound, IsABoundEvenWhenItMustStopAtOnce) {
  Random random(6);
  CancelToken token;
  token.cancel();
  for (int i = 0; i < 20; ++i) {
    const Problem p = random_problem(random, {.ops = 30, .max_devices = 5});
    const Bound hurried = lower_bound(p, Deadline::never(token));
    EXPECT_GT(hurried.us, 0);
    EXPECT_LE(hurried.us, lower_bound(p).us * (1 + 1e-9));
  }
}

class LowerBoundOf : public testing::TestWithParam<Objective> {};

TEST_P(LowerBoundOf, NeverExceedsTheBruteForceOptimum) {
  if (GetParam() == Objective::kThroughput) GTEST_SKIP() << "orders do not matter; see the checked plans";
  Random random(31);
  double closeness = 0;
  int count = 0;
  for (int round = 0; round < 150; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(2, GetParam() == Objective::kLatency ? 5 : 3)),
                      .max_devices = 3,
                      .edge_probability = 0.4};
    shape.objective = GetParam();
    const Problem p = random_problem(random, shape);
    const double best = BruteForce(p).best();
    if (!(best < kInfinity) || best == 0) continue;
    const double bound = lower_bound(p).us;
    ASSERT_LE(bound, best * (1 + 1e-9)) << round;
    closeness += bound / best;
    ++count;
  }
  EXPECT_GT(count, 100);
  EXPECT_GT(closeness / count, 0.8);
}

TEST_P(LowerBoundOf, NeverExceedsACheckedPlan) {
  Random random(32);
  for (int round = 0; round < 150; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(1, 10)), .max_devices = 5};
    shape.objective = GetParam();
    shape.known_segments = random.chance(0.5);
    const Problem p = random_problem(random, shape);
    const double bound = lower_bound(p).us;
    for (int i = 0; i < 20; ++i) {
      std::vector<Lane> lanes(GetParam() == Objective::kThroughput && random.chance(0.5) ? 2 : 1);
      for (Lane& lane : lanes) {
        lane.assignment = random_assignment(random, p);
        lane.share = 1.0 / static_cast<double>(lanes.size());
        if (random.chance(0.5)) lane.assignment.segment = merge_segments(p, lane.assignment);
      }
      const auto plan = build_plan(p, lanes);
      if (!plan.ok()) continue;
      const auto t = evaluate(p, *plan);
      ASSERT_TRUE(t.ok());
      const CheckReport report = check(p, *plan, *t, bound);
      ASSERT_TRUE(report.ok()) << round << ": " << report.findings[0].message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, LowerBoundOf,
                         testing::Values(Objective::kLatency, Objective::kColdLatency,
                                         Objective::kThroughput),
                         [](const auto& i) { return objective_test_name(i.param); });

}  // namespace
}  // namespace heddle::test
