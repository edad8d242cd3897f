#include "heddle/report/moves.h"

#include <gtest/gtest.h>

#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/op_named.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/builder.h"
#include "heddle/planners/planner.h"

namespace heddle {
namespace {

Problem problem_on(const std::string& preset) {
  Problem problem;
  problem.graph = build_zoo_graph("inception-v3", {}).value();
  problem.cluster = load_cluster(preset).value();
  problem.costs = std::make_shared<const CostTable>(
      build_cost_table(*problem.graph, *problem.cluster, *roofline_cost_model(), {}).value());
  return problem;
}

PlanResult planned(const Problem& problem) {
  return run_planner(*find_planner("heft"), problem, PlannerOptions()).value();
}

TEST(Moves, AnOpOnEachDevice) {
  const Problem problem = problem_on("preset:v100");
  const PlanResult result = planned(problem);
  const Assignment decided = assignment_of(problem, result.plan);
  for (const size_t index : {size_t{0}, problem.graph->num_ops() / 2, problem.graph->num_ops() - 1}) {
    const auto moves = moves_of(problem, result.plan, OpId(index));
    ASSERT_TRUE(moves.ok()) << moves.error().to_string();
    ASSERT_EQ(moves->size(), problem.cluster->num_devices());
    for (const Move& move : *moves) {
      EXPECT_EQ(move.planned, move.device == decided.device[index]);
      EXPECT_DOUBLE_EQ(move.ops_us, problem.costs->us(OpId(index), move.device));
      ASSERT_TRUE(move.value_us) << move.refused;
      // Any plan keeps the bound, and the plan itself has its value.
      EXPECT_GE(*move.value_us, result.bound.us * (1 - 1e-9));
      if (move.planned) {
        EXPECT_DOUBLE_EQ(*move.value_us, result.value_us);
      }
    }
  }
}

TEST(Moves, TheBestUseIsTheBestOfAllMoves) {
  const Problem problem = problem_on("preset:v100");
  const PlanResult result = planned(problem);
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    const auto best = best_use(problem, result.plan, DeviceId(d));
    ASSERT_TRUE(best.ok()) << best.error().to_string();
    ASSERT_TRUE(best->move);
    EXPECT_EQ(best->move->device, DeviceId(d));
    EXPECT_EQ(best->tried, best->candidates);
    for (size_t op = 0; op < problem.graph->num_ops(); op += 17) {
      const auto moves = moves_of(problem, result.plan, OpId(op));
      const Move& here = (*moves)[d];
      if (here.planned || !here.value_us) continue;
      EXPECT_LE(*best->move->value_us, *here.value_us * (1 + 1e-9));
    }
    const auto late = best_use(problem, result.plan, DeviceId(d), Deadline::after_seconds(0));
    ASSERT_TRUE(late.ok() && late->move);
    EXPECT_LT(late->tried, late->candidates);
    EXPECT_NE(best_use_text(problem, DeviceId(d), *late, 1).find("there was time to try"), std::string::npos);
  }
}

TEST(Moves, AnImpossibleOneSaysWhy) {
  Problem problem = problem_on("preset:v100");
  auto costs = std::make_shared<CostTable>(*problem.costs);
  costs->set(OpId(3), DeviceId(1), {});
  problem.costs = costs;
  const PlanResult result = planned(problem);
  const auto moves = moves_of(problem, result.plan, OpId(3));
  EXPECT_FALSE((*moves)[1].value_us);
  EXPECT_EQ((*moves)[1].refused, "the device cannot run it");
}

TEST(Moves, LanesAreRefused) {
  Problem problem = problem_on("preset:v100");
  const PlanResult result = planned(problem);
  Plan lanes = result.plan;
  lanes.lane_shares = {0.5, 0.5};
  EXPECT_EQ(moves_of(problem, lanes, OpId(0)).error().code(), Code::kUnsupported);
}

TEST(OpNamed, FindsOpsAndSaysWhatIsNear) {
  const Problem problem = problem_on("preset:v100");
  const Graph& graph = *problem.graph;
  EXPECT_EQ(op_named(graph, graph.op(OpId(5)).name).value(), OpId(5));
  const auto missing = op_named(graph, graph.op(OpId(5)).name + "x");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().to_string().find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace heddle
