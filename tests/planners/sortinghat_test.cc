// SortingHat's program against all choices of slots, its submodel loop, and the planners on top of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/plan_store.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/checker.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"
#include "sortinghat/cold_bundles.h"
#include "sortinghat/load_ways.h"
#include "sortinghat/slot_model.h"
#include "sortinghat/slot_search.h"

namespace heddle::test {
namespace {

Problem random_problem(Random& random, int ops) {
  std::vector<int64_t> params;
  for (int v = 0; v < ops; ++v) params.push_back(random.chance(0.6) ? random.between(1, 40) : 0);
  auto graph = make_graph(ops, random_wires(random, ops, 0.5), params);
  auto cluster = two_gpus(random.chance(0.5));
  Problem p = make_problem(graph, cluster, random_times(random, static_cast<size_t>(ops), 2),
                           Objective::kColdLatency);
  auto costs = std::make_shared<CostTable>(*p.costs);
  for (size_t v = 0; v < costs->num_ops(); ++v) {
    for (size_t d = 0; d < 2; ++d) {
      if (params[v] > 0 && random.chance(0.7))
        costs->set_host_access(OpId(v), DeviceId(d), random.uniform(1, 12));
    }
  }
  p.costs = costs;
  return p;
}

// The least TotalLatency over all slots of all nodes that satisfy equations 2 to 11.
double least_total(const SlotProblem& p) {
  SlotTimer timer(p);
  Slots slots(p.num_nodes(), 0);
  double least = kImpossible;
  size_t combinations = 1;
  for (size_t v = 0; v < p.num_nodes(); ++v) combinations *= p.num_slots();
  for (size_t c = 0; c < combinations; ++c) {
    size_t rest = c;
    for (size_t v = 0; v < p.num_nodes(); ++v, rest /= p.num_slots())
      slots[v] = static_cast<uint32_t>(rest % p.num_slots());
    if (timer.time(slots) && timer.excess_bytes() == 0) least = std::min(least, timer.total_us());
  }
  return least;
}

TEST(SlotModel, IsOptimalWhereAllChoicesAreTried) {
  Random random(5);
  int solved = 0, gained = 0;
  for (int round = 0; round < 24; ++round) {
    const Problem p = random_problem(random, 3);
    if (p.graph->num_params() > 3) continue;
    const ColdTables tables(p, p.usable_devices());
    const Submodels whole = dominator_submodels(*p.graph, 1000);
    SlotOptions options;
    options.q = 2;
    const SlotProblem slots = slot_problem(tables, whole, 0, first_state(tables), options);
    if (slots.num_nodes() > 6) continue;
    const auto start = search_slots(slots, 1, 0, {});  // no local search: the solver shall have work
    ASSERT_TRUE(start);
    SlotTimer timer(slots);
    ASSERT_TRUE(timer.time(*start));
    const double best = least_total(slots), before = timer.total_us();
    ASSERT_LE(best, before + 1e-9);
    const SlotModel model(slots, *start);
    const auto solution = solve(model.milp());
    ASSERT_TRUE(solution.ok()) << solution.error().to_string();
    ASSERT_EQ(solution->status, SolveStatus::kOptimal);
    // Durations are rounded up to millionths of the start's end.
    EXPECT_NEAR(model.us_of(solution->objective), best, 1e-4 * before) << round;
    const Slots found = model.slots(solution->values);
    ASSERT_TRUE(timer.time(found)) << round;
    EXPECT_NEAR(timer.total_us(), best, 1e-4 * before) << round;
    const auto cp = solve(model.cp());
    if (!cp.ok()) {
      EXPECT_EQ(cp.error().code(), Code::kUnsupported) << cp.error().to_string();
    } else {
      EXPECT_EQ(cp->status, SolveStatus::kOptimal);
      EXPECT_NEAR(model.us_of(cp->objective / SlotModel::kTicksPerUnit), best, 1e-4 * before) << round;
    }
    ++solved;
    gained += best < before - 1e-6;
  }
  EXPECT_GT(solved, 10);
  EXPECT_GT(gained, 0);
}

TEST(SlotModel, StartSatisfiesEveryRow) {
  Random random(6);
  for (int round = 0; round < 30; ++round) {
    const Problem p = random_problem(random, 8);
    const ColdTables tables(p, p.usable_devices());
    const Submodels whole = dominator_submodels(*p.graph, 1000);
    const SlotProblem slots = slot_problem(tables, whole, 0, first_state(tables), {});
    const auto start = search_slots(slots, 1, 20, {});
    ASSERT_TRUE(start);
    const SlotModel model(slots, *start);
    std::vector<double> values(model.milp().variables().size(), -1);
    for (const auto& [var, value] : model.milp().start()) values[static_cast<size_t>(var.index)] = value;
    EXPECT_EQ(violation(model.milp(), values), "") << round;
    EXPECT_EQ(model.slots(values), *start);
  }
}

// Solvers of one submodel have at most this time; cold-search ends by itself.
PlanResult plan_with(const std::string& planner, const Problem& problem, int ndom = 1) {
  PlannerOptions options;
  if (planner != "cold-search") options.deadline = Deadline::after_seconds(0.6);
  options.dominators = ndom;
  auto result = run_planner(*find_planner(planner), problem, options);
  EXPECT_TRUE(result.ok()) << planner << ": " << (result.ok() ? "" : result.error().to_string());
  return result.ok() ? std::move(*result) : PlanResult();
}

// Two branches of 10 us with 100 bytes each, a join without: with a bus each, the branches load and run at
// once.
TEST(SortingHat, LoadsOverBothBusesAndRunsBranchesAtOnce) {
  auto graph = make_graph(4, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}}, {0, 100, 100, 0});
  const auto times = std::vector<std::vector<double>>(4, {10, 10});
  const Problem p = make_problem(graph, two_gpus(false), times, Objective::kColdLatency);
  EXPECT_NEAR(plan_with("cold-single", p).value_us, 200 + 10 + 10, 1e-9);
  for (const char* planner : {"sortinghat", "cold-search"}) {
    const PlanResult r = plan_with(planner, p);
    EXPECT_LT(r.value_us, 100 + 10 + 10 + 1) << planner;
    EXPECT_GE(r.value_us, 100 + 10 + 10) << planner;
    // 200 bytes leave host memory over two links, and two ops follow.
    EXPECT_GE(r.bound.us, 120 - 1e-6) << planner;
  }
}

TEST(EfficientMip, SaysThatTimeCutItShortAndRepeatsWithoutADeadline) {
  Random random(9);
  const Problem p = random_problem(random, 6);
  PlannerOptions timed;
  timed.deadline = Deadline::after_seconds(1);
  const auto cut = run_planner(*find_planner("efficient-mip"), p, timed);
  ASSERT_TRUE(cut.ok()) << cut.error().to_string();
  const auto programs = [](const PlanResult& r) { return r.counters.at("programs"); };
  const bool solved = cut->counters.count("programs") &&
                      programs(*cut) == cut->counters.at("programs_optimal") &&
                      cut->counters.count("programs_skipped") == 0;
  EXPECT_EQ(cut->stop, solved ? StopReason::kFinished : StopReason::kTimeLimit);
  const auto a = run_planner(*find_planner("efficient-mip"), p, {}),
             b = run_planner(*find_planner("efficient-mip"), p, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->stop, StopReason::kFinished);
  EXPECT_EQ(a->value_us, b->value_us);
  EXPECT_EQ(programs(*a), a->counters.at("submodels"));
}

std::shared_ptr<const Cluster> one_gpu(double latency_us) {
  ClusterBuilder builder("one");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  Device d;
  d.name = d.device_class = "g";
  d.host = host;
  d.copy_engines = 0;
  const NodeId node = builder.device_node(builder.add_device(d));
  builder.add_link({.name = "pcie",
                    .a = builder.host_node(host),
                    .b = node,
                    .bytes_per_s = 1e6,
                    .latency_us = latency_us,
                    .duplex = Duplex::kFull});
  return *builder.build();
}

TEST(ColdSearch, LoadsOpsTogetherWhereThatSavesLatency) {
  // Five loads of 10 bytes. One by one: 5 * (6 + 10), then the last run. All at once: 6 + 50 + 5 * 4.
  // The first four together and then the last: their loads end at 46 and 62, their runs at 62 and 66.
  auto graph = make_graph(5, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 1}}, {10, 10, 10, 10, 10});
  const Problem p =
      make_problem(graph, one_gpu(6), std::vector<std::vector<double>>(5, {4}), Objective::kColdLatency);
  EXPECT_NEAR(plan_with("cold-single", p).value_us, 84, 1e-9);
  EXPECT_NEAR(plan_with("cold-serial", p).value_us, 76, 1e-9);
  EXPECT_NEAR(plan_with("cold-search", p).value_us, 66, 1e-9);
}

TEST(ColdSearch, BundlesAreTheBestOfAllCuts) {
  Random random(14);
  for (int round = 0; round < 30; ++round) {
    constexpr int kOps = 7;
    std::vector<int64_t> params;
    std::vector<Wire> wires;
    for (int v = 0; v < kOps; ++v) params.push_back(random.chance(0.8) ? random.between(1, 30) : 0);
    for (int v = 1; v < kOps; ++v) wires.push_back({v - 1, v, 1});
    const Problem p = make_problem(make_graph(kOps, wires, params), one_gpu(random.uniform(0, 12)),
                                   random_times(random, kOps, 1), Objective::kColdLatency);
    const ColdTables tables(p, p.usable_devices());
    PlanStore all(p), ours(p);
    for (unsigned cut = 0; cut < 1U << (kOps - 1); ++cut) {
      Assignment a;
      a.device.assign(kOps, DeviceId(0));
      a.order.assign(p.graph->topological_order().begin(), p.graph->topological_order().end());
      for (int v = 0; v < kOps; ++v)
        a.segment.push_back(v == 0 ? 0 : a.segment.back() + (cut >> (v - 1) & 1));
      all.offer(a, "cut");
    }
    const auto topological = tables.flat().topological();
    const auto bundled = bundled_on(tables, 0, {topological.begin(), topological.end()});
    ASSERT_TRUE(bundled);
    ASSERT_TRUE(ours.offer(*bundled, "bundled"));
    EXPECT_NEAR(ours.value_us(), all.value_us(), 1e-9 * all.value_us()) << round;
  }
}

// Parameters of 200 bytes, one GPU in use: the other one's bus is there, but it lends no memory on the way.
TEST(ColdSearch, OtherDevicesBusesNeitherCarryNorLowerTheBound) {
  auto graph = make_graph(4, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}}, {0, 100, 100, 0});
  const auto times = std::vector<std::vector<double>>(4, {10, 10});
  Problem p = make_problem(graph, two_gpus(false), times, Objective::kColdLatency);
  Assignment a;
  a.device.assign(4, DeviceId(0));
  a.order.assign(p.graph->topological_order().begin(), p.graph->topological_order().end());
  a.routes.push_back(hops_over(*p.cluster, DeviceId(1), DeviceId(0)));
  ASSERT_EQ(a.routes[0].size(), 2U);
  a.load_route = {-1, -1, 0, -1};
  const auto plan = build_plan(p, a);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  Timeline timeline;
  ASSERT_TRUE(Evaluator(p).evaluate(*plan, {}, timeline).ok());
  EXPECT_TRUE(check(p, *plan, timeline).ok());
  EXPECT_LT(timeline.makespan_us, 200);
  EXPECT_LE(lower_bound(p).us, timeline.makespan_us);

  p.devices = {DeviceId(0)};
  EXPECT_FALSE(check(p, *plan, timeline).ok());
  const auto refused = Evaluator(p).evaluate(*plan, {}, timeline);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().to_string().find("'g1', which is not among the devices to use"),
            std::string::npos);
  const PlanResult best = plan_with("cold-search", p);
  EXPECT_NEAR(best.value_us, 220, 1e-9);
  EXPECT_NEAR(best.bound.us, 220, 1e-6);
}

TEST(SortingHat, CutsAsItIsTold) {
  auto graph = make_graph(6, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 1}, {4, 5, 1}}, {9, 9, 9, 9, 9, 9});
  const auto times = std::vector<std::vector<double>>(6, {5, 5});
  const Problem p = make_problem(graph, two_gpus(true), times, Objective::kColdLatency);
  EXPECT_EQ(plan_with("sortinghat", p, 1).counters.at("submodels"), 6);
  EXPECT_EQ(plan_with("sortinghat", p, 4).counters.at("submodels"), 2);
  const PlanResult swept = plan_with("sortinghat", p, 0);
  EXPECT_LE(swept.value_us, plan_with("sortinghat", p, 1).value_us + 1e-9);
  PlannerOptions odd;
  odd.subgraph_slots = 5;
  const auto refused = run_planner(*find_planner("sortinghat"), p, odd);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidInput);
}

TEST(SortingHat, EveryPlanIsVerifiedAndOursIsNoWorse) {
  Random random(9);
  for (int round = 0; round < 8; ++round) {
    const Problem p = random_problem(random, 7);
    const double paper = plan_with("sortinghat", p).value_us;
    const double baseline = plan_with("efficient-mip", p).value_us;
    const PlanResult ours = plan_with("cold-search", p);
    EXPECT_LE(ours.value_us, paper * (1 + 1e-9)) << round;
    EXPECT_LE(ours.value_us, baseline * (1 + 1e-9)) << round;
    EXPECT_GE(ours.value_us, ours.bound.us * (1 - 1e-9)) << round;
    const auto again = plan_with("cold-search", p);
    EXPECT_EQ(again.value_us, ours.value_us) << round;
  }
}

}  // namespace
}  // namespace heddle::test
