// Batches of requests: the problem, the batched planners, the exact ones against every division.
#include "heddle/planners/batch_problem.h"

#include <gtest/gtest.h>

#include "diviml/string_search.h"
#include "diviml/task_model.h"
#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

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

// The copies' period as one lane is so many times that of the lanes.
TEST(SideBySide, IsTheLanesOfOneProblem) {
  Random random(65);
  Problem one = one_request(random, 5);
  one.objective = Objective::kThroughput;
  const auto two = side_by_side(one, 2);
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  const auto order = one.graph->topological_order();
  ASSERT_EQ(two->graph->num_ops(), 2 * order.size());
  Assignment all;
  std::vector<Lane> lanes(2);
  for (size_t l = 0; l < 2; ++l) {
    lanes[l].share = 0.5;
    lanes[l].assignment.device.resize(order.size());
    for (const OpId v : order) {
      const DeviceId d(static_cast<int32_t>(random.below(2)));
      all.device.push_back(d);
      lanes[l].assignment.device[v.index()] = d;
      lanes[l].assignment.order.push_back(v);
    }
  }
  all.order.assign(two->graph->topological_order().begin(), two->graph->topological_order().end());
  const auto joined = build_plan(*two, all), split = build_plan(one, lanes);
  ASSERT_TRUE(joined.ok() && split.ok());
  const auto a = evaluate(*two, *joined), b = evaluate(one, *split);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NEAR(a->period_us, 2 * b->period_us, 1e-9 * a->period_us);
  EXPECT_FALSE(side_by_side(one, 0).ok());
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

// What is timed from the first change on is what is timed whole, and what is given up is above the limit.
TEST(StringSearch, TimesAChangeAsTheWholeString) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    const Problem one = one_request(random, 4 + static_cast<int>(random.below(8)));
    const Problem problem = random.chance(0.5) ? two_requests(one) : one;
    const FlatProblem flat(problem, problem.usable_devices());
    const TaskModel model(flat);
    StringSearch search(model, 3), whole(model, 3);
    double now = search.fitness();
    for (int step = 0; step < 300; ++step) {
      const size_t changes = 1 + random.below(3);
      for (size_t i = 0; i < changes; ++i) search.mutate(random.below(search.size()));
      whole.set_genes(search.genes());
      const double expected = whole.fitness();
      ASSERT_NEAR(expected, time_batches(model, search.batches()).makespan, 1e-9 * expected);
      const double limit = random.chance(0.3) ? kImpossible : now * random.uniform(0.8, 1.3);
      const double next = search.fitness(limit);
      if (next == kImpossible) {
        ASSERT_GT(expected, limit);
      } else {
        ASSERT_DOUBLE_EQ(next, expected);
      }
      if (next <= limit && random.chance(0.5)) {
        search.keep();
        now = next;
      } else {
        search.undo();
      }
    }
  }
}

}  // namespace
}  // namespace heddle
