#include "heddle/plan/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "heddle/plan/builder.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

// Cold start on two GPUs (1 byte per us, latency 1 us), a on g0 feeds b on g1 and c on g0; parameters of 10
// bytes: load a 0-11 (g0), load b 0-11 (g1), load c 11-22 (g0), run a 11-16, send a.out (4 bytes) 16-22, b
// 22-29, c 22-25.
struct Fixture {
  Problem problem;
  Plan plan;
  Timeline timeline;
};

Fixture base() {
  auto graph =
      make_graph({{"a", {}, 4, {{"wa", 10}}}, {"b", {"a"}, 4, {{"wb", 10}}}, {"c", {"a"}, 4, {{"wc", 10}}}});
  Fixture f;
  f.problem = make_problem(graph, make_gpu_cluster(2, 2, false, 100), {{5, 5}, {7, 7}, {3, 3}},
                           Objective::kColdLatency);
  Assignment a;
  a.device = {DeviceId(0), DeviceId(1), DeviceId(0)};
  a.order = {OpId(0), OpId(1), OpId(2)};
  f.plan = *build_plan(f.problem, a);
  f.timeline = *evaluate(f.problem, f.plan);
  return f;
}

size_t step_of(const Fixture& f, StepKind kind, const std::string& segment) {
  for (size_t i = 0; i < f.plan.steps.size(); ++i) {
    const Step& s = f.plan.steps[i];
    if (s.kind == kind && f.plan.segments[s.segment.index()].name == segment) return i;
  }
  ADD_FAILURE() << "no such step";
  return 0;
}

void erase_step(Fixture& f, size_t i) {
  const auto at = static_cast<std::ptrdiff_t>(i);
  f.plan.steps.erase(f.plan.steps.begin() + at);
  f.timeline.start_us.erase(f.timeline.start_us.begin() + at);
  f.timeline.finish_us.erase(f.timeline.finish_us.begin() + at);
}

struct Mutation {
  const char* name;
  Violation expected;
  std::function<void(Fixture&)> apply;
};

void shift(Fixture& f, size_t i, double us) {
  f.timeline.start_us[i] += us;
  f.timeline.finish_us[i] += us;
}

std::vector<Mutation> mutations() {
  using V = Violation;
  const auto run = [](Fixture& f, const char* s) { return step_of(f, StepKind::kRun, s); };
  const auto load = [](Fixture& f, const char* s) { return step_of(f, StepKind::kLoad, s); };
  const auto send = [](Fixture& f) { return step_of(f, StepKind::kTransfer, "a"); };
  return {
      {"a segment without its op", V::kMalformed, [](Fixture& f) { f.plan.segments[1].ops.clear(); }},
      {"an op in no segment", V::kOpMissing, [](Fixture& f) { f.plan.segments[1].ops = {OpId(0)}; }},
      {"an op in two segments", V::kOpTwice,
       [](Fixture& f) {
         f.plan.segments[1].ops = {OpId(0), OpId(1)};
       }},
      {"a segment that never runs", V::kOpMissing, [=](Fixture& f) { erase_step(f, run(f, "b")); }},
      {"a segment that runs twice", V::kOpTwice,
       [=](Fixture& f) {
         f.plan.steps.push_back(f.plan.steps[run(f, "b")]);
         f.timeline.start_us.push_back(40);
         f.timeline.finish_us.push_back(47);
       }},
      {"an op id out of range", V::kMalformed, [](Fixture& f) { f.plan.segments[0].ops = {OpId(77)}; }},
      {"a negative op id", V::kMalformed, [](Fixture& f) { f.plan.segments[0].ops = {OpId(-3)}; }},
      {"a device out of range", V::kMalformed, [](Fixture& f) { f.plan.segments[0].device = DeviceId(9); }},
      {"a step's segment out of range", V::kMalformed,
       [](Fixture& f) { f.plan.steps[0].segment = SegmentId(9); }},
      {"a tensor out of range", V::kMalformed,
       [=](Fixture& f) { f.plan.steps[send(f)].tensor = TensorId(90); }},
      {"a time that is not a number", V::kMalformed,
       [](Fixture& f) { f.timeline.start_us[0] = std::numeric_limits<double>::quiet_NaN(); }},
      {"a time before 0", V::kMalformed, [](Fixture& f) { shift(f, 0, -5); }},
      {"times of another size", V::kMalformed, [](Fixture& f) { f.timeline.start_us.pop_back(); }},
      {"a device that is not allowed", V::kDeviceForbidden,
       [](Fixture& f) { f.problem.devices = {DeviceId(0)}; }},
      {"a device that cannot run the op", V::kDeviceForbidden,
       [](Fixture& f) {
         auto costs = std::make_shared<CostTable>(*f.problem.costs);
         costs->set(OpId(1), DeviceId(1), {});
         f.problem.costs = costs;
       }},
      {"a run before its tensor", V::kOrder, [=](Fixture& f) { shift(f, run(f, "b"), -3); }},
      {"a transfer before its producer ends", V::kOrder, [=](Fixture& f) { shift(f, send(f), -2); }},
      {"a run before its parameters", V::kOrder, [=](Fixture& f) { shift(f, run(f, "a"), -4); }},
      {"a list that is not topological", V::kOrder,
       [=](Fixture& f) {
         const size_t i = run(f, "b"), j = send(f);
         std::swap(f.plan.steps[i], f.plan.steps[j]);
         std::swap(f.timeline.start_us[i], f.timeline.start_us[j]);
         std::swap(f.timeline.finish_us[i], f.timeline.finish_us[j]);
       }},
      {"two runs at once on a device", V::kOverlap, [=](Fixture& f) { shift(f, run(f, "c"), -7); }},
      {"two loads at once on a link", V::kOverlap, [=](Fixture& f) { shift(f, load(f, "c"), -3); }},
      {"a memory that is too small", V::kMemory,
       [](Fixture& f) { f.problem.cluster = make_gpu_cluster(2, 2, false, 20); }},
      {"a wrong memory peak", V::kMemory, [](Fixture& f) { f.timeline.peak_memory_bytes[0] += 1; }},
      {"a route that breaks", V::kRoute,
       [=](Fixture& f) {
         f.plan.routes = {{{LinkId(1), true}, {LinkId(0), true}}};
         f.plan.steps[send(f)].route = 0;
       }},
      {"a route that ends elsewhere", V::kRoute,
       [=](Fixture& f) {
         f.plan.routes = {{{LinkId(0), false}}};
         f.plan.steps[send(f)].route = 0;
       }},
      {"a route over no link", V::kRoute,
       [=](Fixture& f) {
         f.plan.routes = {{{LinkId(40), false}}};
         f.plan.steps[send(f)].route = 0;
       }},
      {"a route in a circle", V::kRoute,
       [=](Fixture& f) {
         f.plan.routes = {{{LinkId(0), false}, {LinkId(0), true}, {LinkId(0), false}, {LinkId(1), true}}};
         f.plan.steps[send(f)].route = 0;
       }},
      {"a transfer from another device", V::kRoute,
       [=](Fixture& f) { f.plan.steps[send(f)].from = DeviceId(1); }},
      {"a missing transfer", V::kTransferMissing, [=](Fixture& f) { erase_step(f, send(f)); }},
      {"a transfer done twice", V::kMalformed,
       [=](Fixture& f) {
         f.plan.steps.push_back(f.plan.steps[send(f)]);
         f.timeline.start_us.push_back(50);
         f.timeline.finish_us.push_back(56);
       }},
      {"a missing load", V::kLoadMissing, [=](Fixture& f) { erase_step(f, load(f, "b")); }},
      {"a load under another objective", V::kMalformed,
       [](Fixture& f) { f.problem.objective = Objective::kLatency; }},
      {"a run that is too short", V::kTime, [=](Fixture& f) { f.timeline.finish_us[run(f, "b")] -= 1; }},
      {"a transfer that is too short", V::kTime, [=](Fixture& f) { f.timeline.finish_us[send(f)] -= 1; }},
      {"a load that is too short", V::kTime, [=](Fixture& f) { f.timeline.finish_us[load(f, "b")] -= 1; }},
      {"a wrong makespan", V::kTime, [](Fixture& f) { f.timeline.makespan_us -= 1; }},
      {"a wrong busy time", V::kTime, [](Fixture& f) { f.timeline.device_busy_us[0] += 1; }},
      {"two lanes of one request", V::kShares,
       [](Fixture& f) {
         f.plan.lane_shares = {0.5, 0.5};
       }},
      {"shares that do not sum to 1", V::kShares, [](Fixture& f) { f.plan.lane_shares = {0.7}; }},
      {"no lanes", V::kShares, [](Fixture& f) { f.plan.lane_shares = {}; }},
  };
}

TEST(Checker, AcceptsThePlanBeforeItIsBroken) {
  const Fixture f = base();
  EXPECT_EQ(f.timeline.makespan_us, 29);
  EXPECT_TRUE(check(f.problem, f.plan, f.timeline, 29).ok());
}

TEST(Checker, RejectsEveryKindOfBrokenPlanForTheRightReason) {
  for (const Mutation& m : mutations()) {
    Fixture f = base();
    m.apply(f);
    const CheckReport report = check(f.problem, f.plan, f.timeline);
    const bool named = std::any_of(report.findings.begin(), report.findings.end(),
                                   [&](const Finding& x) { return x.kind == m.expected; });
    EXPECT_TRUE(named) << m.name << ": expected " << violation_name(m.expected) << ", found "
                       << (report.ok() ? "nothing" : violation_name(report.findings[0].kind));
  }
}

TEST(Checker, RejectsABoundAboveTheValue) {
  const Fixture f = base();
  const CheckReport report = check(f.problem, f.plan, f.timeline, 29.1);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Violation::kBound);
}

// a -> b -> c with a and c in one segment: b waits for that segment, and it for b.
TEST(Checker, RejectsASegmentThatIsNotConvex) {
  auto graph = make_graph({{"a", {}, 1}, {"b", {"a"}, 1}, {"c", {"b"}, 1}});
  const Problem p = make_problem(graph, make_gpu_cluster(1), {{1}, {1}, {1}});
  Plan plan;
  plan.segments = {{"ac", {OpId(0), OpId(2)}, DeviceId(0), 0}, {"b", {OpId(1)}, DeviceId(0), 0}};
  plan.steps = {{StepKind::kRun, SegmentId(0), TensorId(), DeviceId(0), DeviceId(0), -1},
                {StepKind::kRun, SegmentId(1), TensorId(), DeviceId(0), DeviceId(0), -1}};
  Timeline t;
  t.start_us = {0, 2};
  t.finish_us = {2, 3};
  t.makespan_us = 3;
  const CheckReport report = check(p, plan, t);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Violation::kNotConvex);
}

// c0 = {0} and c1 = {0, 1} at once: one core, two tasks.
TEST(Checker, RejectsTwoTasksOnOneCore) {
  const Problem p = make_problem(make_graph({{"a", {}, 1}, {"b", {}, 1}}), make_cpu_cluster({{0}, {0, 1}}),
                                 {{2, 2}, {2, 2}});
  Assignment a;
  a.device = {DeviceId(0), DeviceId(1)};
  a.order = {OpId(0), OpId(1)};
  const Plan plan = *build_plan(p, a);
  Timeline t = *evaluate(p, plan);
  EXPECT_TRUE(check(p, plan, t).ok());
  t.start_us[1] = 1;
  t.finish_us[1] = 3;
  t.makespan_us = 3;
  const CheckReport report = check(p, plan, t);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Violation::kOverlap);
}

TEST(Checker, NamesAtMostTwentyFindingsOfAKind) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 60; ++i) ops.push_back({"o" + std::to_string(i), {}, 1});
  const Problem p =
      make_problem(make_graph(ops), make_gpu_cluster(1), std::vector<std::vector<double>>(60, {1}));
  Plan plan;
  plan.segments = {{"only", {OpId(0)}, DeviceId(0), 0}};
  plan.steps = {{StepKind::kRun, SegmentId(0), TensorId(), DeviceId(0), DeviceId(0), -1}};
  Timeline t;
  t.start_us = {0};
  t.finish_us = {1};
  t.makespan_us = 1;
  EXPECT_EQ(check(p, plan, t).findings.size(), 20u);
}

}  // namespace
}  // namespace heddle::test
