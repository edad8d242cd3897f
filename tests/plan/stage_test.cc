// Stages: segments of one device that run at once, from decisions to a checked plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/json.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan_file.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

// a feeds b and c, which feed d; two devices, ops of 10 us that use 60 % of a device.
Problem diamond(int width) {
  Problem p = make_problem(make_graph({{"a", {}, 4}, {"b", {"a"}, 4}, {"c", {"a"}, 4}, {"d", {"b", "c"}, 4}}),
                           make_gpu_cluster(2), {{10, 10}, {10, 10}, {10, 10}, {10, 10}});
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t v = 0; v < 4; ++v) {
    for (size_t d = 0; d < 2; ++d) costs->set_utilization(OpId(v), DeviceId(d), 0.6);
  }
  for (size_t d = 0; d < 2; ++d) costs->set_stage_model(DeviceId(d), {.serial = 0.5, .overlap = 0.5});
  p.costs = costs;
  p.execution.stage_width = width;
  return p;
}

Assignment all_on_first(const Problem& p) {
  Assignment a;
  a.device.assign(p.graph->num_ops(), DeviceId(0));
  const auto order = p.graph->topological_order();
  a.order.assign(order.begin(), order.end());
  return a;
}

TEST(Stage, TimeIsTheModelsAndPlanPassesTheChecker) {
  const Problem p = diamond(2);
  Assignment a = all_on_first(p);
  a.stage = {-1, 7, 7, -1};
  const auto plan = build_plan(p, a);
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  const auto t = evaluate(p, *plan);
  ASSERT_TRUE(t.ok()) << t.error().message();
  // t(S) = 0.5 * 20 + 0.5 * max(12, 10) = 16 for the pair.
  EXPECT_DOUBLE_EQ(t->makespan_us, 10 + 16 + 10);
  EXPECT_DOUBLE_EQ(t->device_busy_us[0], 36);
  const Bound bound = lower_bound(p);
  EXPECT_LE(bound.us, 36);
  EXPECT_GT(bound.us, 29.9);  // the path a, b, d
  const CheckReport report = check(p, *plan, *t, bound.us);
  EXPECT_TRUE(report.ok()) << report.findings[0].message;
}

TEST(Stage, RoundTripsThroughPlanFileAndAssignment) {
  const Problem p = diamond(3);
  Assignment a = all_on_first(p);
  a.stage = {-1, 0, 0, -1};
  PlanFile file{.problem = p, .plan = *build_plan(p, a)};
  file.predicted = *evaluate(p, file.plan);
  const Json json = plan_to_json(file);
  const auto again = plan_from_json(JsonCursor(json));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->problem.execution.stage_width, 3);
  EXPECT_DOUBLE_EQ(again->problem.costs->utilization(OpId(1), DeviceId(1)), 0.6);
  EXPECT_EQ(again->problem.costs->stage_model(DeviceId(1)), (StageModel{0.5, 0.5, 0}));
  EXPECT_DOUBLE_EQ(evaluate(again->problem, again->plan)->makespan_us, 36);
  const auto rebuilt = build_plan(p, assignment_of(p, again->plan));
  ASSERT_TRUE(rebuilt.ok());
  EXPECT_DOUBLE_EQ(evaluate(p, *rebuilt)->makespan_us, 36);
}

TEST(Stage, RefusesWhatIsNoStage) {
  const Problem p = diamond(2);
  Assignment a = all_on_first(p);
  a.stage = {0, 0, -1, -1};
  EXPECT_FALSE(build_plan(p, a).ok());  // b needs a
  a.stage = {0, -1, -1, 0};
  EXPECT_FALSE(build_plan(p, a).ok());  // d needs a through b
  a.stage = {-1, 0, 0, -1};
  a.device[1] = DeviceId(1);
  EXPECT_FALSE(build_plan(p, a).ok());  // two devices
  a = all_on_first(p);
  a.stage = {-1, 0, 0, -1};
  EXPECT_FALSE(build_plan(diamond(1), a).ok());  // not allowed
  a.stage = {0, 0};
  EXPECT_FALSE(build_plan(p, a).ok());
}

TEST(Stage, EvaluatorAndCheckerRefuseBrokenStages) {
  const Problem p = diamond(2);
  Assignment a = all_on_first(p);
  a.stage = {-1, 0, 0, -1};
  const Plan good = *build_plan(p, a);
  const Timeline timeline = *evaluate(p, good);

  Plan apart = good;  // the same stage number in two places
  for (Segment& s : apart.segments) s.stage = s.name == "a" || s.name == "d" ? 1 : -1;
  EXPECT_FALSE(evaluate(p, apart).ok());
  EXPECT_FALSE(check(p, apart, timeline).ok());

  Plan dependent = good;
  for (Segment& s : dependent.segments) s.stage = s.name == "a" || s.name == "b" ? 1 : -1;
  EXPECT_FALSE(evaluate(p, dependent).ok());
  EXPECT_FALSE(check(p, dependent, timeline).ok());

  Plan wild = good;
  for (Segment& s : wild.segments) s.stage = s.stage < 0 ? s.stage : 1'000'000'000;
  EXPECT_FALSE(evaluate(p, wild).ok());

  EXPECT_FALSE(evaluate(diamond(1), good).ok());
  EXPECT_FALSE(check(diamond(1), good, timeline).ok());

  // A member that starts later than the rest, and a stage that is too short.
  Timeline late = timeline, quick = timeline;
  for (size_t i = 0; i < good.steps.size(); ++i) {
    const Segment& s = good.segments[good.steps[i].segment.index()];
    if (s.name == "c") late.start_us[i] += 1;
    if (s.stage >= 0) quick.finish_us[i] -= 1;
  }
  EXPECT_FALSE(check(p, good, late).ok());
  EXPECT_FALSE(check(p, good, quick).ok());
}

// Stages drawn at random among neighbours of one device in the order; nothing when none fits.
void draw_stages(Random& random, const Problem& p, Assignment& a) {
  a.segment.clear();
  a.stage.assign(a.order.size(), -1);
  for (int tries = 0; tries < 12; ++tries) {
    Assignment next = a;
    const size_t first = random.below(a.order.size());
    const OpId head = a.order[first];
    if (a.stage[head.index()] >= 0) continue;
    int members = 1;
    next.stage[head.index()] = tries;
    for (size_t i = first + 1; i < a.order.size() && members < p.execution.stage_width; ++i) {
      const OpId op = a.order[i];
      if (a.device[op.index()] != a.device[head.index()] || a.stage[op.index()] >= 0) continue;
      next.stage[op.index()] = tries;
      ++members;
    }
    if (build_plan(p, next).ok()) a = std::move(next);
  }
}

TEST(Stage, RandomPlansAreCheckedAndNoBoundIsAboveThem) {
  int with_stages = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.ops = 3 + static_cast<int>(random.below(12));
    shape.objective = seed % 3 == 0   ? Objective::kColdLatency
                      : seed % 3 == 1 ? Objective::kLatency
                                      : Objective::kThroughput;
    shape.known_segments = seed % 2 == 0;
    Problem p = random_problem(random, shape);
    auto costs = std::make_shared<CostTable>(*p.costs);
    for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
      costs->set_stage_model(DeviceId(d), {random.uniform(0, 1), random.uniform(0, 1), random.uniform(0, 2)});
      for (size_t v = 0; v < p.graph->num_ops(); ++v)
        costs->set_utilization(OpId(v), DeviceId(d), random.uniform(0, 1));
    }
    p.costs = costs;
    p.execution.stage_width = 2 + static_cast<int>(random.below(3));
    ASSERT_TRUE(validate(p).ok());
    Assignment a = random_assignment(random, p);
    if (a.device.empty()) continue;
    draw_stages(random, p, a);
    const auto plan = build_plan(p, a);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.error().message();
    const auto timeline = evaluate(p, *plan);
    ASSERT_TRUE(timeline.ok()) << seed << ": " << timeline.error().message();
    const Bound bound = lower_bound(p);
    CheckReport report = check(p, *plan, *timeline, bound.us);
    // Random problems may have memory limits that a random assignment breaks.
    std::erase_if(report.findings, [](const Finding& f) { return f.kind == Violation::kMemory; });
    ASSERT_TRUE(report.ok()) << seed << ": " << report.findings[0].message;
    with_stages += std::any_of(plan->segments.begin(), plan->segments.end(),
                               [](const Segment& s) { return s.stage >= 0; });
  }
  EXPECT_GT(with_stages, 300);
}

}  // namespace
}  // namespace heddle::test
