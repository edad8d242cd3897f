// CP-SAT's plans and bounds against trying everything.
#include <gtest/gtest.h>

#include "heddle/planners/planner.h"
#include "heddle/solve/self_test.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

PlanResult plan_with_cp_sat(const Problem& problem, const Deadline& deadline = {}) {
  PlannerOptions options;
  options.deadline = deadline;
  auto result = run_planner(*find_planner("cp-sat"), problem, options);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return result.ok() ? std::move(*result) : PlanResult{};
}

Problem random_problem(Random& random, int i, Objective objective, bool contention) {
  const auto cluster = i % 3 == 0 ? make_cpus({{0, 1}, {0}, {1}}) : i % 3 == 1 ? make_mesh(2) : make_mixed();
  const int ops = 3 + i % 3;
  const auto graph = make_graph(ops, random_wires(random, ops, 0.4), {5, 0, 9, 3, 7});
  auto problem = make_problem(
      graph, cluster, random_times(random, static_cast<size_t>(ops), cluster->num_devices()), objective);
  problem.execution.link_contention = problem.execution.engine_contention = contention;
  return problem;
}

TEST(CpSat, ProvesTheLeastLatencyWhereNothingContends) {
  HEDDLE_NEEDS_CP_SAT;
  Random random(41);
  for (int i = 0; i < 60; ++i) {
    const auto problem = random_problem(random, i, Objective::kLatency, false);
    const double least = brute_force_us(problem);
    const auto result = plan_with_cp_sat(problem);
    EXPECT_NEAR(result.value_us, least, 1e-9 * least) << "instance " << i;
    EXPECT_LE(result.bound.us, least * (1 + 1e-9)) << "instance " << i;
    // The bound that needs no solver is the other possibility.
    if (!result.bound.proof.proven()) {
      EXPECT_EQ(result.bound.proof.claimed_by, cp_sat_name());
    }
    EXPECT_GE(result.bound.us, least * (1 - 1e-4)) << "instance " << i;
  }
}

TEST(CpSat, BoundsHoldUnderContentionAndLoadsToo) {
  HEDDLE_NEEDS_CP_SAT;
  Random random(42);
  for (int i = 0; i < 60; ++i) {
    const auto objective = i % 2 == 0 ? Objective::kLatency : Objective::kColdLatency;
    const auto problem = random_problem(random, i, objective, true);
    const double least = brute_force_us(problem);
    const auto result = plan_with_cp_sat(problem, Deadline::after_seconds(0.3));
    EXPECT_LE(result.bound.us, least * (1 + 1e-9)) << "instance " << i;
    EXPECT_GE(result.value_us, least * (1 - 1e-9)) << "instance " << i;
  }
}

// Segments known to be faster than their ops' sum: the bound must not count the sum.
TEST(CpSat, BoundsHonourKnownSegments) {
  HEDDLE_NEEDS_CP_SAT;
  const auto graph = make_graph(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}});
  auto problem = make_problem(graph, make_mesh(2), {{4, 9}, {4, 9}, {4, 9}, {4, 9}}, Objective::kLatency);
  auto costs = std::make_shared<CostTable>(*problem.costs);
  costs->set_segment({{OpId(0), OpId(1), OpId(2), OpId(3)}, DeviceId(0), {10, Origin::kMeasured, 0}});
  problem.costs = costs;
  const auto result = plan_with_cp_sat(problem);
  EXPECT_LE(result.bound.us, 10);
  EXPECT_NEAR(result.value_us, 10, 1e-9);
}

TEST(CpSat, IsTheSameForASeed) {
  HEDDLE_NEEDS_CP_SAT;
  Random random(43);
  const auto problem = make_problem(make_graph(12, random_wires(random, 12, 0.3)), make_mesh(3),
                                    random_times(random, 12, 3), Objective::kLatency);
  const auto a = plan_with_cp_sat(problem), b = plan_with_cp_sat(problem);
  EXPECT_EQ(a.value_us, b.value_us);
  EXPECT_EQ(a.bound.us, b.bound.us);
  EXPECT_EQ(a.plan.segments.size(), b.plan.segments.size());
}

}  // namespace
}  // namespace heddle
