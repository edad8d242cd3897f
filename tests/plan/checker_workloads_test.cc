// The checker on the workloads of papers: plans that hold, broken in every way that their kind knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "workload_support.h"

namespace heddle::test::of_workloads {
namespace {

struct Fixture {
  Problem problem;
  Plan plan;
  Timeline timeline;
};

struct Mutation {
  const char* name;
  Violation expected;
  std::function<void(Fixture&)> apply;
};

size_t find_step(const Fixture& f, StepKind kind, int segment) {
  for (size_t i = 0; i < f.plan.steps.size(); ++i) {
    if (f.plan.steps[i].kind == kind && f.plan.steps[i].segment == SegmentId(segment)) return i;
  }
  ADD_FAILURE() << "no such step";
  return 0;
}
size_t run_of(const Fixture& f, int segment) { return find_step(f, StepKind::kRun, segment); }
size_t send_of(const Fixture& f, int segment) { return find_step(f, StepKind::kTransfer, segment); }

void shift(Fixture& f, size_t i, double us) {
  f.timeline.start_us[i] += us;
  f.timeline.finish_us[i] += us;
}

void erase_step(Fixture& f, size_t i) {
  const auto at = static_cast<std::ptrdiff_t>(i);
  f.plan.steps.erase(f.plan.steps.begin() + at);
  f.timeline.start_us.erase(f.timeline.start_us.begin() + at);
  f.timeline.finish_us.erase(f.timeline.finish_us.begin() + at);
}

void expect_named(const Fixture& base, const std::vector<Mutation>& mutations) {
  EXPECT_TRUE(check(base.problem, base.plan, base.timeline).ok());
  for (const Mutation& m : mutations) {
    Fixture f = base;
    m.apply(f);
    const CheckReport report = check(f.problem, f.plan, f.timeline);
    const bool named = std::any_of(report.findings.begin(), report.findings.end(),
                                   [&](const Finding& x) { return x.kind == m.expected; });
    EXPECT_TRUE(named) << m.name << ": expected " << violation_name(m.expected) << ", found "
                       << (report.ok() ? "nothing" : violation_name(report.findings[0].kind));
  }
}

// Ops 0 and 1 on devices 0 and 1 from 0 to 5; their flows to op 2 on device 2, of 4 us each, from 5 to 9 and from
// 9 to 13; op 2 from 13 to 18. Op 3 on device 0 after op 0, without data, from 5 to 10.
Fixture flows() {
  const Json matrix = {{0, 4, 4}, {4, 0, 4}, {4, 4, 0}};
  Json json = {{"name", "ports"}};
  for (int k = 0; k < 3; ++k) json["devices"].push_back({{"id", k}, {"memory", 10}});
  for (int v = 0; v < 4; ++v) json["ops"].push_back({{"id", v}, {"time", {5, 5, 5}}, {"memory", 4}});
  json["edges"] = {{{"src", 0}, {"dst", 2}, {"flow", 4}, {"time", matrix}},
                   {{"src", 1}, {"dst", 2}, {"flow", 5}, {"time", matrix}},
                   {{"src", 0}, {"dst", 3}, {"flow", nullptr}}};
  Fixture f;
  f.problem = made(flow_workload_from_json(json)).problem;
  Assignment a;
  a.device = {DeviceId(0), DeviceId(1), DeviceId(2), DeviceId(0)};
  a.order = {OpId(0), OpId(1), OpId(2), OpId(3)};
  f.plan = made(build_plan(f.problem, a));
  f.timeline = made(evaluate(f.problem, f.plan));
  return f;
}

TEST(CheckerOfWorkloads, NamesEveryMistakeInPlansWithGivenTransferTimes) {
  using V = Violation;
  const Fixture base = flows();
  ASSERT_EQ(base.timeline.makespan_us, 18);
  // Segments are numbered as the builder made them.
  const auto segment = [&](int op) {
    for (size_t s = 0; s < base.plan.segments.size(); ++s) {
      if (base.plan.segments[s].ops[0] == OpId(op)) return static_cast<int>(s);
    }
    return -1;
  };
  const int first = segment(0), second = segment(1), reader = segment(2), after = segment(3);
  const auto move = [=](Fixture& f, int s, int device) {
    f.plan.segments[static_cast<size_t>(s)].device = DeviceId(device);
    Step& step = f.plan.steps[run_of(f, s)];
    step.from = step.to = DeviceId(device);
  };
  expect_named(
      base,
      {{"a wrong makespan", V::kTime, [](Fixture& f) { f.timeline.makespan_us -= 1; }},
       {"a wrong busy time", V::kTime, [](Fixture& f) { f.timeline.device_busy_us[1] += 1; }},
       {"a run that is too short", V::kTime,
        [=](Fixture& f) { f.timeline.finish_us[run_of(f, after)] -= 1; }},
       {"a flow that is too short", V::kTime,
        [=](Fixture& f) { f.timeline.finish_us[send_of(f, first)] -= 1; }},
       {"a flow that takes another pair's time", V::kTime,
        [=](Fixture& f) {
          auto times = std::make_shared<TransferTimes>(*f.problem.transfers);
          times->us[2] = 7;  // of the first flow, from device 0 to 2
          f.problem.transfers = times;
        }},
       {"a reader before its flow ends", V::kOrder, [=](Fixture& f) { shift(f, run_of(f, reader), -1); }},
       {"a flow before its op ends", V::kOrder, [=](Fixture& f) { shift(f, send_of(f, first), -1); }},
       {"an op before the one that must precede it", V::kOrder,
        [=](Fixture& f) { shift(f, run_of(f, after), -1); }},
       {"two flows into one device at once", V::kOverlap,
        [=](Fixture& f) { shift(f, send_of(f, second), -1); }},
       {"two ops at once", V::kOverlap, [=](Fixture& f) { shift(f, run_of(f, after), -5); }},
       {"a missing flow", V::kTransferMissing, [=](Fixture& f) { erase_step(f, send_of(f, first)); }},
       {"a flow on a route", V::kRoute,
        [=](Fixture& f) {
          f.plan.routes = {{}};
          f.plan.steps[send_of(f, first)].route = 0;
        }},
       {"a transfer of an order without data", V::kRoute,
        [=](Fixture& f) { f.plan.steps[send_of(f, first)].tensor = f.problem.graph->find_tensor("0->3"); }},
       {"a flow from another device", V::kRoute,
        [=](Fixture& f) { f.plan.steps[send_of(f, first)].from = DeviceId(1); }},
       {"a device with too little memory", V::kMemory, [=](Fixture& f) { move(f, reader, 0); }},
       {"a wrong memory peak", V::kMemory, [](Fixture& f) { f.timeline.peak_memory_bytes[0] += 1; }},
       {"a device out of range", V::kMalformed, [](Fixture& f) { f.plan.segments[0].device = DeviceId(7); }},
       {"times of another size", V::kMalformed, [](Fixture& f) { f.timeline.start_us.pop_back(); }}});
  EXPECT_FALSE(check(base.problem, base.plan, base.timeline, 18.1).ok());
}

// Chain 1 -> 2 -> 3 -> 4 of 3 us each and 1 us to move an output; 1 and 2 on accelerator 0, 3 on accelerator 1,
// 4 on a CPU, where it takes 9 us. In the files' unit.
Fixture placement(const PlacementOptions& options) {
  Json json = {{"maxFPGAs", 2}, {"maxCPUs", 2}, {"maxSizePerFPGA", 10}};
  for (int v = 1; v <= 4; ++v)
    json["nodes"].push_back({{"id", v}, {"cpuLatency", 9}, {"fpgaLatency", 3}, {"size", 4}});
  for (int v = 1; v < 4; ++v) json["edges"].push_back({{"sourceId", v}, {"destId", v + 1}, {"cost", 1}});
  json["nodes"][0]["colorClass"] = json["nodes"][1]["colorClass"] = 7;
  Fixture f;
  f.problem = made(placement_workload_from_json(json, "chain", options));
  f.plan = made(plan_of_placement(f.problem, {{DeviceId(0), DeviceId(0), DeviceId(1), DeviceId(2)}, {}}));
  f.timeline = made(evaluate(f.problem, f.plan));
  return f;
}

// What an accelerator reads out of host memory takes space in its own from the run that reads it. Ops x and y are on
// the accelerator, with 1000 bytes between them; then b reads 100 bytes that a made on the CPU.
TEST(CheckerOnWorkloads, WhatComesWithinARunIsThereWhenTheRunBegins) {
  ClusterBuilder builder("one of each");
  const HostId host = builder.add_host({.name = "h"});
  builder.add_device({.name = "gpu", .kind = DeviceKind::kGpu, .device_class = "gpu", .host = host});
  builder.add_device({.name = "cpu", .kind = DeviceKind::kCpu, .device_class = "cpu", .host = host});
  Problem p = make_problem(
      make_graph({{"x", {}, 1000}, {"y", {"x"}, 10, {}, true}, {"a", {}, 100}, {"b", {"a"}, 10, {}, true}}),
      made(builder.build()), {{10, 10}, {10, 10}, {10, 10}, {10, 10}});
  p.execution.transfers = Transfers::kWithinRuns;
  auto times = std::make_shared<TransferTimes>();
  times->us.assign(p.graph->num_tensors(), 1);
  p.transfers = times;
  Assignment assignment;
  assignment.device = {DeviceId(0), DeviceId(0), DeviceId(1), DeviceId(0)};
  assignment.order = {OpId(0), OpId(1), OpId(2), OpId(3)};
  const Plan plan = made(build_plan(p, assignment));
  const Timeline timeline = made(evaluate(p, plan));
  const CheckReport report = check(p, plan, timeline);
  EXPECT_TRUE(report.ok()) << report.findings[0].message;
  EXPECT_EQ(timeline.peak_memory_bytes[static_cast<size_t>(p.cluster->memory_pool(DeviceId(0)))], 1010);

  p.execution.transfers = Transfers::kRoutes;
  p.transfers = nullptr;
  p.execution.unlimited_cpus = true;
  EXPECT_FALSE(validate(p).ok());  // no bound is proven for that
}

// As the evaluator has it.
TEST(Checker, CpusWithoutALimitShareCoresAtOnce) {
  Problem p = make_problem(make_graph({{"a", {}, 1}, {"b", {}, 1}}), make_cpu_cluster({{0, 1}, {1}}),
                           {{10, 10}, {10, 10}});
  p.execution.transfers = Transfers::kWithinRuns;
  p.execution.unlimited_cpus = true;
  auto times = std::make_shared<TransferTimes>();
  times->us.assign(p.graph->num_tensors(), 0);
  p.transfers = times;
  Assignment assignment;
  assignment.device = {DeviceId(0), DeviceId(1)};
  assignment.order = {OpId(0), OpId(1)};
  const Plan plan = made(build_plan(p, assignment));
  const Timeline timeline = made(evaluate(p, plan));
  EXPECT_EQ(timeline.makespan_us, 10);
  const CheckReport report = check(p, plan, timeline);
  EXPECT_TRUE(report.ok()) << report.findings[0].message;
}

std::vector<Mutation> placement_mutations() {
  using V = Violation;
  const auto rules = [](Fixture& f, const auto& change) {
    auto changed = std::make_shared<PlacementRules>(*f.problem.rules);
    change(*changed);
    f.problem.rules = changed;
  };
  return {
      {"a run that leaves out what it moves", V::kTime, [](Fixture& f) { f.timeline.finish_us[1] -= 1000; }},
      {"a transfer of another time", V::kTime,
       [](Fixture& f) {
         auto times = std::make_shared<TransferTimes>(*f.problem.transfers);
         times->us[1] += 100;
         f.problem.transfers = times;
       }},
      {"a wrong busy time", V::kTime, [](Fixture& f) { f.timeline.device_busy_us[0] -= 1; }},
      {"a run before what it reads", V::kOrder, [](Fixture& f) { shift(f, 1, -1); }},
      {"a transfer step", V::kRoute,
       [](Fixture& f) {
         f.plan.steps.push_back(
             {StepKind::kTransfer, SegmentId(0), TensorId(1), DeviceId(0), DeviceId(1), -1});
         f.timeline.start_us.push_back(9000);
         f.timeline.finish_us.push_back(9001);
       }},
      {"ops of one colour apart", V::kPlacement,
       [=](Fixture& f) { rules(f, [](PlacementRules& r) {
                           r.colour = {7, 7, 7, -1};
                         }); }},
      {"too many segments on an accelerator", V::kPlacement,
       [=](Fixture& f) {
         rules(f, [](PlacementRules& r) { r.most_segments = 1; });
         f.plan.segments[1].device = DeviceId(0);
         f.plan.steps[1].from = f.plan.steps[1].to = DeviceId(0);
       }},
      {"an accelerator with too little memory", V::kMemory,
       [](Fixture& f) {
         f.plan.segments[1].device = DeviceId(0);
         f.plan.steps[1].from = f.plan.steps[1].to = DeviceId(0);
       }},
      {"two lanes", V::kShares,
       [](Fixture& f) {
         f.plan.lane_shares = {0.5, 0.5};
       }},
      {"an op in no segment", V::kOpMissing, [](Fixture& f) { f.plan.segments[0].ops = {OpId(0)}; }},
      {"an op that its device cannot run", V::kDeviceForbidden,
       [](Fixture& f) {
         auto costs = std::make_shared<CostTable>(*f.problem.costs);
         costs->set(OpId(2), DeviceId(1), {});
         f.problem.costs = costs;
       }},
  };
}

TEST(CheckerOfWorkloads, NamesEveryMistakeInPlacementsForLatency) {
  const Fixture f = placement({});
  // In 0, work 6, out 1; in 1, work 3, out 1; 9 on the CPU.
  ASSERT_EQ(f.timeline.makespan_us, 7000 + 5000 + 9000);
  expect_named(f, placement_mutations());
  EXPECT_FALSE(check(f.problem, f.plan, f.timeline, 21001).ok());
}

TEST(CheckerOfWorkloads, NamesEveryMistakeInPlacementsForThroughput) {
  const Fixture f = placement({.objective = Objective::kThroughput, .contiguous = true});
  ASSERT_EQ(f.timeline.period_us, 9000);
  auto mutations = placement_mutations();
  mutations.push_back({"a wrong period", Violation::kTime, [](Fixture& g) { g.timeline.period_us += 1; }});
  mutations.push_back({"devices that cannot be ordered", Violation::kPlacement, [](Fixture& g) {
                         g.plan.segments[2].device = DeviceId(0);
                         g.plan.steps[2].from = g.plan.steps[2].to = DeviceId(0);
                       }});
  expect_named(f, mutations);
}

}  // namespace
}  // namespace heddle::test::of_workloads
