// Batches of requests: the problem, the batched planners, the exact ones against every division.
#include "heddle/planners/batch_problem.h"

#include <gtest/gtest.h>

#include "heddle/planners/planner.h"
#include "planners_support.h"
#include "task_model.h"

namespace heddle {
namespace {

using namespace test;

PlanResult must_plan(const char* planner, const Problem& problem, double seconds = 20) {
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(seconds);
  auto result = run_planner(*find_planner(planner), problem, o);
  if (!result.ok()) ADD_FAILURE() << planner << ": " << result.error().to_string();
  return result.ok() ? std::move(*result) : PlanResult{};
}

Problem one_request(Random& random, int ops, double probability = 0.4) {
  auto problem = make_problem(make_graph(ops, random_wires(random, ops, probability)), make_mesh(2),
                              random_times(random, static_cast<size_t>(ops), 2), Objective::kLatency);
  problem.execution = {.link_contention = false, .engine_contention = false};
  return problem;
}

// A batch of n costs half as much per further request.
Problem two_requests(const Problem& one) {
  auto batch = batch_problem(
      one, 2, [&](OpId op, DeviceId d, int n) { return one.costs->us(op, d) * (0.5 + 0.5 * n); });
  EXPECT_TRUE(batch.ok());
  return *batch;
}

// The least makespan over all devices of all requests and all orders of tasks, one batch per task and device.
double brute_force_batched(const Problem& problem) {
  const FlatProblem flat(problem, problem.usable_devices());
  const TaskModel model(flat);
  const size_t n = model.num_tasks(), genes = n * 2;
  double best = kImpossible;
  // Orders of batches on a device matter beyond the order of tasks: try all orders of batches.
  for (size_t string = 0; string < size_t{1} << genes; ++string) {
    std::vector<Batch> all;
    for (uint32_t t = 0; t < n; ++t) {
      for (uint32_t d = 0; d < 2; ++d) {
        Batch b{t, d, 0};
        for (uint32_t l = 0; l < 2; ++l) {
          if ((string >> (t * 2 + l) & 1) == d) b.requests |= 1U << l;
        }
        if (b.requests != 0) all.push_back(b);
      }
    }
    std::vector<Batch> order;
    std::vector<uint8_t> used(all.size(), 0);
    const auto extend = [&](const auto& self) -> void {
      if (order.size() == all.size()) {
        best = std::min(best, time_batches(model, order).makespan);
        return;
      }
      for (size_t i = 0; i < all.size(); ++i) {
        if (used[i]) continue;
        bool ready = true;
        for (size_t j = 0; j < all.size(); ++j) {
          if (used[j] || (all[j].requests & all[i].requests) == 0) continue;
          for (const auto& e : model.in(all[i].task)) ready = ready && e.src != all[j].task;
        }
        if (!ready) continue;
        used[i] = 1;
        order.push_back(all[i]);
        self(self);
        order.pop_back();
        used[i] = 0;
      }
    };
    extend(extend);
  }
  return best;
}

TEST(BatchProblem, SharesParametersAndKnowsEveryBatch) {
  Random random(61);
  const Problem one = one_request(random, 4);
  const Problem batch = two_requests(one);
  EXPECT_TRUE(validate(batch).ok());
  EXPECT_EQ(batch.graph->num_ops(), 8u);
  EXPECT_EQ(batch.graph->num_params(), one.graph->num_params());
  const FlatProblem flat(batch, batch.usable_devices());
  const TaskModel model(flat);
  ASSERT_EQ(model.num_requests(), 2u);
  ASSERT_EQ(model.num_tasks(), 4u);
  for (size_t t = 0; t < 4; ++t) {
    for (size_t d = 0; d < 2; ++d) EXPECT_DOUBLE_EQ(model.us(t, d, 2), 1.5 * model.us(t, d, 1));
  }
}

TEST(BatchProblem, RefusesWhatMakesNoSense) {
  Random random(62);
  Problem one = one_request(random, 3);
  const auto times = [&](OpId op, DeviceId d, int n) { return one.costs->us(op, d) * n; };
  EXPECT_FALSE(batch_problem(one, 1, times).ok());
  EXPECT_FALSE(batch_problem(one, 9, times).ok());
  EXPECT_FALSE(batch_problem(one, 2, [](OpId, DeviceId, int) { return -1.0; }).ok());
  one.objective = Objective::kThroughput;
  EXPECT_FALSE(batch_problem(one, 2, times).ok());
}

TEST(Batched, ExactPlannersAreAsGoodAsEveryDivisionOfTinyBatches) {
  Random random(63);
  for (int i = 0; i < 6; ++i) {
    const Problem batch = two_requests(one_request(random, 3, 0.6));
    const double least = brute_force_batched(batch);
    for (const char* planner : {"diviml-milp", "diviml-cp"}) {
      const auto result = must_plan(planner, batch);
      // A constructive plan may run two batches of one task on one device, which the paper's model excludes.
      EXPECT_LE(result.value_us, least * (1 + 1e-9)) << planner << ", instance " << i;
    }
  }
}

TEST(Batched, EveryLatencyPlannerGivesACheckedPlan) {
  Random random(64);
  for (int i = 0; i < 2; ++i) {
    const Problem batch = two_requests(one_request(random, 8));
    for (const char* planner : {"single", "met", "greedy", "heft", "sa", "ea", "milp-split", "cp-split"})
      EXPECT_TRUE(must_plan(planner, batch, 0.5).verified) << planner;
  }
}

TEST(Batched, SingleRunsWholeBatchesOnTheBestDevice) {
  const auto one =
      make_problem(make_graph(2, {{0, 1, 1}}), make_mesh(2), {{4, 6}, {4, 6}}, Objective::kLatency);
  EXPECT_DOUBLE_EQ(must_plan("single", two_requests(one)).value_us, 12);
}

}  // namespace
}  // namespace heddle
