#include "heddle/plan/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

Assignment on(const std::vector<int>& devices) {
  Assignment a;
  for (size_t v = 0; v < devices.size(); ++v) {
    a.device.emplace_back(devices[v]);
    a.order.emplace_back(v);
  }
  return a;
}

bool routes_allow(const Assignment& a) {
  return std::all_of(a.device.begin(), a.device.end(), [](DeviceId d) { return d.valid(); });
}

// Random groups of ops on one device; build_plan refuses those that are cyclic.
std::vector<int> random_groups(Random& random, const Assignment& a) {
  std::vector<int> group(a.device.size());
  for (size_t v = 0; v < group.size(); ++v) group[v] = static_cast<int>(v);
  for (size_t i = 1; i < a.order.size(); ++i) {
    const size_t u = a.order[i - 1].index(), v = a.order[i].index();
    if (a.device[u] == a.device[v] && random.chance(0.5)) group[v] = group[u];
  }
  return group;
}

// a (1 us) and b (2 us) end at 1 and 2 on g0 and g1; both send 5 bytes (7 us) to g2. b's order number is
// lower, but a's tensor is ready first, and g2's link serves it first: 1-8, then 8-15.
TEST(Builder, ServesTransfersFirstComeFirstServed) {
  auto graph = make_graph({{"b", {}, 5}, {"a", {}, 5}, {"c", {"b", "a"}, 0}});
  const Problem p = make_problem(graph, make_gpu_cluster(3), {{2, 2, 2}, {1, 1, 1}, {1, 1, 1}});
  const auto plan = build_plan(p, on({0, 1, 2}));
  ASSERT_TRUE(plan.ok());
  std::vector<TensorId> sent;
  for (const Step& s : plan->steps) {
    if (s.kind == StepKind::kTransfer) sent.push_back(s.tensor);
  }
  EXPECT_EQ(sent, (std::vector<TensorId>{graph->find_tensor("a.out"), graph->find_tensor("b.out")}));
  EXPECT_EQ(evaluate(p, *plan)->makespan_us, 16);
}

TEST(Builder, RefusesWhatCannotBeBuilt) {
  auto graph = make_graph({{"a", {}, 1}, {"b", {"a"}, 1}, {"c", {"b"}, 1}});
  const Problem p = make_problem(graph, make_gpu_cluster(2), {{1, 1}, {1, -1}, {1, 1}});
  EXPECT_FALSE(build_plan(p, Assignment{}).ok());
  EXPECT_FALSE(build_plan(p, on({0, 1, 0})).ok());  // b cannot run on g1
  EXPECT_FALSE(build_plan(p, on({0, 7, 0})).ok());  // no such device
  Assignment backwards = on({0, 0, 0});
  std::reverse(backwards.order.begin(), backwards.order.end());
  EXPECT_FALSE(build_plan(p, backwards).ok());
  Assignment twice = on({0, 0, 0});
  twice.order[2] = OpId(0);
  EXPECT_FALSE(build_plan(p, twice).ok());
  Assignment around = on({0, 0, 0});
  around.segment = {1, 2, 1};  // a and c around b
  EXPECT_FALSE(build_plan(p, around).ok());
  Assignment mixed = on({0, 0, 1});
  mixed.segment = {1, 2, 2};  // one segment, two devices
  EXPECT_FALSE(build_plan(p, mixed).ok());
  Problem restricted = p;
  restricted.devices = {DeviceId(0)};
  EXPECT_FALSE(build_plan(restricted, on({0, 0, 1})).ok());
  EXPECT_FALSE(build_plan(p, std::vector<Lane>{}).ok());
}

class BuilderOnRandomProblems : public testing::TestWithParam<Objective> {};

TEST_P(BuilderOnRandomProblems, MakesPlansThatTheEvaluatorTimesAlikeAndTheCheckerAccepts) {
  Random random(21);
  int built = 0, with_segments = 0;
  for (int round = 0; round < 500; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(1, 25)), .max_devices = 5};
    shape.objective = GetParam();
    shape.known_segments = random.chance(0.3);
    const Problem p = random_problem(random, shape);
    Assignment a = random_assignment(random, p);
    if (!routes_allow(a)) continue;
    if (random.chance(0.5)) a.segment = random_groups(random, a);
    const auto plan = build_plan(p, a);
    if (!plan.ok()) {
      // Routes were looked at, so only groups can be at fault.
      ASSERT_FALSE(a.segment.empty()) << plan.error().to_string();
      continue;
    }
    const auto t = evaluate(p, *plan);
    ASSERT_TRUE(t.ok()) << round << ": " << t.error().to_string();
    EXPECT_TRUE(std::is_sorted(t->start_us.begin(), t->start_us.end())) << round;
    const CheckReport report = check(p, *plan, *t);
    ASSERT_TRUE(report.ok()) << round << ": " << report.findings[0].message;
    ++built;
    with_segments += !a.segment.empty();
  }
  EXPECT_GT(built, 250);
  EXPECT_GT(with_segments, 60);
}

TEST_P(BuilderOnRandomProblems, ReadsBackTheAssignmentItWasGiven) {
  Random random(22);
  for (int round = 0; round < 200; ++round) {
    const Problem p = random_problem(random, {.ops = 12, .max_devices = 4, .objective = GetParam()});
    const Assignment a = random_assignment(random, p);
    if (!routes_allow(a)) continue;
    const Plan plan = *build_plan(p, a);
    const Assignment back = assignment_of(p, plan);
    EXPECT_EQ(back.device, a.device);
    EXPECT_TRUE(back.segment.empty());
    const auto again = build_plan(p, back);
    ASSERT_TRUE(again.ok());
    if (p.cluster->overlaps(DeviceId(0)).empty() && GetParam() != Objective::kColdLatency) {
      EXPECT_LE(evaluate(p, *again)->makespan_us, evaluate(p, plan)->makespan_us * 1.5 + 1);
    }
  }
}

TEST_P(BuilderOnRandomProblems, MergesSegmentsWithoutMakingTheRequestLater) {
  Random random(23);
  int merged_some = 0;
  for (int round = 0; round < 600; ++round) {
    RandomShape shape{
        .ops = static_cast<int>(random.between(2, 25)), .max_devices = 3, .edge_probability = 0.15};
    shape.objective = GetParam();
    shape.known_segments = random.chance(0.3);
    const Problem p = random_problem(random, shape);
    const Assignment a = random_assignment(random, p);
    if (!routes_allow(a)) continue;
    const auto before = build_plan(p, a);
    ASSERT_TRUE(before.ok());
    Assignment merged = a;
    merged.segment = merge_segments(p, a);
    const auto after = build_plan(p, merged);
    ASSERT_TRUE(after.ok()) << round << ": " << after.error().to_string();
    EXPECT_LE(after->segments.size(), before->segments.size());
    merged_some += after->segments.size() < before->segments.size();
    const auto was = evaluate(p, *before), now = evaluate(p, *after);
    ASSERT_TRUE(was.ok() && now.ok());
    ASSERT_LE(now->makespan_us, was->makespan_us * (1 + 1e-9)) << round;
    ASSERT_TRUE(check(p, *after, *now).ok()) << round << ": " << check(p, *after, *now).findings[0].message;
  }
  EXPECT_GT(merged_some, 100);
}

TEST(MergeSegments, UnitesAChainOnOneDeviceIntoOneSegment) {
  auto graph = make_graph({{"a", {}, 1}, {"b", {"a"}, 1}, {"c", {"b"}, 1}, {"d", {"c"}, 1}});
  const Problem p = make_problem(graph, make_gpu_cluster(1), {{1}, {2}, {3}, {4}});
  Assignment a = on({0, 0, 0, 0});
  a.segment = merge_segments(p, a);
  EXPECT_EQ(build_plan(p, a)->segments.size(), 1u);
}

// a and b on g0, but c on g1 waits for a: uniting a and b would keep c waiting for b.
TEST(MergeSegments, LeavesApartWhatSomebodyElseWaitsFor) {
  auto graph = make_graph({{"a", {}, 1}, {"b", {"a"}, 1}, {"c", {"a"}, 1}});
  const Problem p = make_problem(graph, make_gpu_cluster(2), {{1, 1}, {20, 20}, {30, 30}});
  Assignment a = on({0, 0, 1});
  a.segment = merge_segments(p, a);
  EXPECT_EQ(build_plan(p, a)->segments.size(), 3u);
}

// The union is known to be slower than the sum: kept apart.
TEST(MergeSegments, LeavesApartWhatIsSlowerTogether) {
  auto graph = make_graph({{"a", {}, 1}, {"b", {"a"}, 1}});
  Problem p = make_problem(graph, make_gpu_cluster(1), {{1}, {2}});
  auto costs = std::make_shared<CostTable>(*p.costs);
  costs->set_segment({{OpId(0), OpId(1)}, DeviceId(0), {5, Origin::kMeasured, 0}});
  p.costs = costs;
  Assignment a = on({0, 0});
  a.segment = merge_segments(p, a);
  EXPECT_EQ(build_plan(p, a)->segments.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Objectives, BuilderOnRandomProblems,
                         testing::Values(Objective::kLatency, Objective::kColdLatency,
                                         Objective::kThroughput),
                         [](const auto& i) { return objective_test_name(i.param); });

}  // namespace
}  // namespace heddle::test
