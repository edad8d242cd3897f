// CP-SAT with stages: its bound is under every plan, its plans are the best of small problems.
#include <gtest/gtest.h>

#include "core/configurations.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/planners/planner.h"
#include "hios/stage_planner.h"
#include "random_small.h"
#include "stage_support.h"

namespace heddle::test {
namespace {

// The problem with stages of up to three; without `segments`, the known ones are forgotten.
Problem with_stages(Random& random, Problem p, bool segments) {
  const size_t n = p.graph->num_ops(), k = p.cluster->num_devices();
  auto costs = std::make_shared<CostTable>(segments ? *p.costs : CostTable(n, k));
  for (size_t d = 0; d < k; ++d) {
    const DeviceId device(d);
    for (size_t v = 0; v < n; ++v) {
      const OpId op(v);
      if (!segments && p.costs->us(op, device) < kImpossible)
        costs->set(op, device, {p.costs->us(op, device), Origin::kGiven, 0});
      costs->set_utilization(op, device, random.uniform(0, 1));
    }
    if (random.chance(0.5))
      costs->set_stage_model(device, kSimulatedStages);
    else
      costs->set_stage_model(device,
                             {random.uniform(0, 0.8), random.uniform(0, 0.8), random.chance(0.5) ? 1.0 : 0});
  }
  p.costs = std::move(costs);
  p.execution.stage_width = static_cast<int>(random.between(2, 3));
  return p;
}

// The least of many random plans: ops in a topological order, each in a stage of its own, beside the ones
// before it, or in the group of one of them.
double best_of_random_plans(Random& random, const Problem& p, int plans) {
  const auto devices = p.usable_devices();
  const auto order = p.graph->topological_order();
  double best = kNoTime;
  for (int round = 0; round < plans; ++round) {
    std::vector<ListedStage> stages;
    for (const OpId v : order) {
      const double choice = random.uniform(0, 1);
      if (!stages.empty() && choice < 0.3) {
        stages[random.below(stages.size())].groups.push_back({v});
      } else if (!stages.empty() && choice < 0.5) {
        auto& groups = stages[random.below(stages.size())].groups;
        groups[random.below(groups.size())].push_back(v);
      } else {
        stages.push_back({devices[random.below(devices.size())], {{v}}});
      }
    }
    const auto plan = build_plan(p, assignment_of_stages(p.graph->num_ops(), stages));
    if (!plan.ok()) continue;
    const auto timeline = evaluate(p, *plan);
    if (timeline.ok() && check(p, *plan, *timeline).ok()) best = std::min(best, timeline->makespan_us);
  }
  return best;
}

bool cannot_load_solver(const PlanResult& result) {
  return result.detail.find("without CP-SAT") != std::string::npos;
}

TEST(StageCp, ItsBoundIsUnderEveryPlan) {
  Random random(77);
  int proven = 0, problems = 0;
  for (int round = 0; round < 40; ++round) {
    const Problem p =
        with_stages(random, random_small_problem(random, Objective::kLatency), random.chance(0.5));
    const auto result = run_planner(*find_planner("stage-cp"), p, {.deadline = Deadline::after_seconds(0.5)});
    if (!result.ok()) {
      ASSERT_NE(result.error().code(), Code::kInternal) << result.error().to_string();
      continue;
    }
    if (cannot_load_solver(*result)) GTEST_SKIP() << result->detail;
    const double best = std::min(result->value_us, best_of_random_plans(random, p, 400));
    ASSERT_LE(result->bound.us, best * (1 + 1e-9) + 1e-9)
        << "problem " << round << ": " << result->bound.proof.text();
    ++problems;
    proven += result->stop == StopReason::kOptimal ? 1 : 0;
  }
  EXPECT_GT(problems, 25);
  EXPECT_GT(proven, problems / 3);
}

TEST(StageCp, IsNoWorseThanEveryScheduleOfSmallProblems) {
  Random random(78);
  int problems = 0, proven = 0;
  while (problems < 20) {
    Problem p = with_stages(random, random_small_problem(random, Objective::kLatency), false);
    if (p.graph->num_ops() > 6 || configurations(p).size() != 1) continue;
    p.execution.link_contention = p.execution.engine_contention = false;
    const auto result = run_planner(*find_planner("stage-cp"), p, {.deadline = Deadline::after_seconds(0.5)});
    if (!result.ok()) continue;
    if (cannot_load_solver(*result)) GTEST_SKIP() << result->detail;
    ++problems;
    const auto instance = stage_instance_of(p, configurations(p)[0]);
    const double optimum = brute_force_stages(instance);
    // A memory limit is not in the instance: what fits is compared.
    if (result->value_us > optimum * (1 + 1e-5)) {
      EXPECT_LE(result->bound.us, optimum * (1 + 1e-9));
    } else {
      proven += result->stop == StopReason::kOptimal ? 1 : 0;
    }
  }
  EXPECT_GT(proven, 10);
}

}  // namespace
}  // namespace heddle::test
