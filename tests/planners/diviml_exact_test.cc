// DiviML's exact planners against every possible plan, against each other, and their bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "diviml/split_bound.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

constexpr ExecutionModel kFree{.link_contention = false, .engine_contention = false};
constexpr const char* kExact[] = {"diviml-milp", "diviml-cp"};
constexpr const char* kSplits[] = {"milp-split", "cp-split"};

Problem random_problem(Random& random, int ops, int devices) {
  auto graph = make_graph(ops, random_wires(random, ops, 0.35));
  auto problem = make_problem(std::move(graph), make_mesh(devices),
                              random_times(random, static_cast<size_t>(ops), static_cast<size_t>(devices)),
                              Objective::kLatency);
  problem.execution = kFree;
  return problem;
}

// Modules of a source, some ops between and a sink, in a row; the sink of one feeds the source of the next.
std::vector<Wire> chain_of_modules(Random& random, int modules, int inner) {
  std::vector<Wire> wires;
  for (int m = 0; m < modules; ++m) {
    const int first = m * (inner + 1), last = first + inner + 1;  // the sink is the next one's source
    for (int v = first + 1; v < last; ++v) {
      std::vector<int> reads;
      for (int u = first + 1; u < v; ++u) {
        if (random.chance(0.4)) reads.push_back(u);
      }
      if (reads.empty()) reads.push_back(first);
      for (const int u : reads) wires.push_back({u, v, random.between(1, 8)});
    }
    for (int v = first + 1; v < last; ++v) {
      const bool read = std::any_of(wires.begin(), wires.end(), [&](const Wire& w) { return w.from == v; });
      if (!read) wires.push_back({v, last, random.between(1, 8)});
    }
  }
  return wires;
}

TEST(DivimlExact, FindsAndProvesTheLeastLatencyOfTinyProblems) {
  Random random(51);
  for (int i = 0; i < 12; ++i) {
    const Problem problem = random_problem(random, 5, i % 2 == 0 ? 2 : 3);
    const double least = brute_force_us(problem);
    for (const char* planner : kExact) {
      const auto result = must_plan(planner, problem);
      EXPECT_NEAR(result.value_us, least, 1e-6) << planner << ", instance " << i;
      EXPECT_EQ(result.stop, StopReason::kOptimal) << planner << ", instance " << i;
      EXPECT_GE(result.bound.us, least * (1 - 1e-4)) << planner << ", instance " << i;
    }
    for (const char* planner : kSplits)
      EXPECT_GE(must_plan(planner, problem).value_us, least * (1 - 1e-9)) << planner;
  }
}

TEST(DivimlExact, RespectsDevicesThatCannotRunAnOp) {
  Random random(52);
  for (int i = 0; i < 6; ++i) {
    auto times = random_times(random, 5, 3);
    for (size_t v = 0; v < 5; ++v) times[v][random.below(3)] = -1;
    auto problem =
        make_problem(make_graph(5, random_wires(random, 5, 0.4)), make_mesh(3), times, Objective::kLatency);
    problem.execution = kFree;
    const double least = brute_force_us(problem);
    for (const char* planner : kExact)
      EXPECT_NEAR(must_plan(planner, problem).value_us, least, 1e-6) << planner;
  }
}

// Transfers that wait for each other make plans slower, never faster: the bound stays one.
TEST(DivimlExact, BoundsPlansWithContentionAndMemoryToo) {
  Random random(53);
  for (int i = 0; i < 8; ++i) {
    auto problem = random_problem(random, 5, 2);
    problem.execution = {};
    const double least = brute_force_us(problem);
    for (const char* planner : {"diviml-milp", "diviml-cp", "milp-split", "cp-split"}) {
      const auto result = must_plan(planner, problem);
      EXPECT_GE(result.value_us, least * (1 - 1e-9)) << planner;
      EXPECT_LE(result.bound.us, least * (1 + 1e-9)) << planner;
    }
  }
}

TEST(Split, IsOptimalOnModulesWithSingleChannels) {
  Random random(54);
  for (int i = 0; i < 6; ++i) {
    const auto wires = chain_of_modules(random, 3, 3);
    constexpr int kOps = 3 * 4 + 1;
    auto problem = make_problem(make_graph(kOps, wires), make_mesh(2), random_times(random, kOps, 2),
                                Objective::kLatency);
    problem.execution = kFree;
    const auto whole = must_plan("diviml-cp", problem);
    ASSERT_EQ(whole.stop, StopReason::kOptimal);
    for (const char* planner : kSplits) {
      const auto split = must_plan(planner, problem);
      EXPECT_NEAR(split.value_us, whole.value_us, 1e-6 * whole.value_us) << planner << ", instance " << i;
      EXPECT_EQ(split.stop, StopReason::kOptimal) << planner;
      EXPECT_GE(split.bound.us, whole.value_us * (1 - 1e-4)) << planner;
      EXPECT_LE(split.bound.us, whole.value_us * (1 + 1e-9)) << planner;
    }
  }
}

TEST(Split, SolvesFewerModulesThanThereArePairsOfDevices) {
  Random random(55);
  constexpr int kModules = 8, kOps = kModules * 4 + 1;
  const auto wires = chain_of_modules(random, kModules, 3);
  auto problem =
      make_problem(make_graph(kOps, wires), make_mesh(3), random_times(random, kOps, 3), Objective::kLatency);
  problem.execution = kFree;
  const auto split = must_plan("cp-split", problem);
  EXPECT_EQ(split.stop, StopReason::kOptimal);
  EXPECT_LT(split.counters.at("modules_solved"), split.counters.at("subproblems"));
}

// Modules of three ops with two channels between neighbours; brute force over the whole says what is right.
TEST(Split, BoundsNetworksWithSeveralChannels) {
  Random random(56);
  for (int i = 0; i < 10; ++i) {
    std::vector<Wire> wires;
    for (int m = 0; m < 2; ++m) {
      const int a = 3 * m;
      wires.push_back({a, a + 1, random.between(1, 8)});
      if (random.chance(0.5)) wires.push_back({a, a + 2, random.between(1, 8)});
    }
    wires.push_back({1, 3, random.between(1, 8)});
    wires.push_back({2, i % 2 == 0 ? 4 : 5, random.between(1, 8)});
    auto problem =
        make_problem(make_graph(6, wires), make_mesh(2), random_times(random, 6, 2), Objective::kLatency);
    problem.execution = kFree;
    const double least = brute_force_us(problem);
    const FlatProblem flat(problem, problem.usable_devices());
    const TaskModel model(flat);
    Modules modules;
    modules.tasks = {{0, 1, 2}, {3, 4, 5}};
    modules.last = {-1, -1};
    const auto bound = split_bound(model, modules, solve_module_by_cp, {});
    ASSERT_TRUE(bound.ok());
    EXPECT_LE(bound->us, least * (1 + 1e-9)) << "instance " << i;
    EXPECT_GT(bound->us, 0);
  }
}

// A segment of one op may be known to take longer than its share of a segment of several.
TEST(DivimlExact, ProvesNothingAboutSegmentsThatAreFasterThanTheirOpsAlone) {
  auto problem = make_problem(make_graph(2, {{0, 1, 1}}), make_mesh(1), {{10}, {10}}, Objective::kLatency);
  problem.execution = kFree;
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (const size_t op : {0, 1})
    costs->set_segment({{OpId(op)}, DeviceId(0), {.us = 15, .origin = Origin::kGiven}});
  problem.costs = costs;
  for (const char* planner : {"diviml-milp", "diviml-cp", "milp-split", "cp-split"}) {
    const auto plan = run_planner(*find_planner(planner), problem, {});
    if (!plan.ok() && plan.error().code() == Code::kUnsupported) continue;
    ASSERT_TRUE(plan.ok()) << planner << ": " << plan.error().to_string();
    EXPECT_LE(plan->bound.us, 20 * (1 + 1e-9)) << planner;
  }
}

}  // namespace
}  // namespace heddle
