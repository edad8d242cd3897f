// Flow workloads: exact small cases against brute force, random ones against the checker, the public data.
#include "heddle/planners/flow_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "heddle/base/file.h"
#include "heddle/base/random.h"
#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

FlowWorkload random_workload(Random& random, size_t ops, size_t devices, double probability) {
  FlowWorkload w;
  w.name = "random";
  w.memory.assign(devices, 1e9);
  for (size_t v = 0; v < ops; ++v) {
    FlowOp op;
    op.name = std::to_string(v);
    op.memory = static_cast<double>(random.between(0, 5));
    for (size_t k = 0; k < devices; ++k) op.ticks.push_back(random.between(0, 9));
    w.ops.push_back(op);
  }
  for (uint32_t a = 0; a < ops; ++a) {
    for (uint32_t b = a + 1; b < ops; ++b) {
      if (!random.chance(probability)) continue;
      Flow f;
      f.from = a;
      f.to = b;
      f.precedence = random.chance(0.1);
      f.ticks.assign(f.precedence ? 0 : devices * devices, 0);
      for (size_t i = 0; i < f.ticks.size(); ++i) {
        if (i / devices != i % devices) f.ticks[i] = random.between(0, 6);
      }
      w.flows.push_back(f);
    }
  }
  return w;
}

// Every device of each op, every topological order of all tasks.
class BruteForce {
 public:
  explicit BruteForce(const FlowWorkload& w) : w_(w) {}
  int64_t run() {
    d_.device.assign(w_.num_ops(), 0);
    devices(0);
    return best_;
  }

 private:
  void devices(size_t v) {
    if (v < w_.num_ops()) {
      for (uint32_t k = 0; k < w_.num_devices(); ++k) {
        d_.device[v] = k;
        devices(v + 1);
      }
      return;
    }
    std::vector<double> used(w_.num_devices(), 0);
    for (size_t i = 0; i < w_.num_ops(); ++i) used[d_.device[i]] += w_.ops[i].memory;
    for (size_t k = 0; k < used.size(); ++k) {
      if (used[k] > w_.memory[k]) return;
    }
    done_.assign(w_.num_tasks(), false);
    orders();
  }
  void orders() {
    if (d_.order.size() == w_.num_tasks()) {
      best_ = std::min(best_, evaluate_flows(w_, d_)->makespan);
      return;
    }
    const auto n = static_cast<uint32_t>(w_.num_ops());
    for (uint32_t task = 0; task < w_.num_tasks(); ++task) {
      if (done_[task]) continue;
      bool ready = task < n || done_[w_.flows[task - n].from];
      for (uint32_t q = 0; task < n && q < w_.num_flows(); ++q)
        ready = ready && (w_.flows[q].to != task || done_[n + q]);
      if (!ready) continue;
      done_[task] = true;
      d_.order.push_back(task);
      // What takes no resource has no order to try.
      orders();
      d_.order.pop_back();
      done_[task] = false;
      const bool idle = task >= n && (w_.flows[task - n].precedence ||
                                      d_.device[w_.flows[task - n].from] == d_.device[w_.flows[task - n].to]);
      if (idle) return;
    }
  }
  const FlowWorkload& w_;
  FlowDecisions d_;
  std::vector<bool> done_;
  int64_t best_ = INT64_MAX;
};

PlannerOptions seconds(double s) {
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(s);
  return o;
}

TEST(FlowPlanner, FindsAndProvesTheOptimumOfSmallWorkloads) {
  if (const auto solver = cp_sat_self_test(); !solver.ok() && solver.error().code() == Code::kUnsupported)
    GTEST_SKIP() << solver.error().to_string();
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    auto w = random_workload(random, 4, 2, 0.6);
    if (i % 3 == 0) {
      double total = 0;
      for (const auto& op : w.ops) total += op.memory;
      w.memory.assign(2, std::ceil(total / 2) + 1);
    }
    const int64_t best = BruteForce(w).run();
    const auto plan = plan_flows(w, seconds(2));
    if (best == INT64_MAX) {
      EXPECT_EQ(plan.error().code(), Code::kInfeasible);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->schedule.makespan, best) << i;
    EXPECT_EQ(plan->bound, best) << i;
    EXPECT_TRUE(check_flows(w, plan->schedule).empty());
  }
}

// A workload whose ops all pass through serial ones: the answer of the blocks is that of the whole program.
TEST(FlowPlanner, BlocksGiveTheOptimumOfTheWhole) {
  Random random(6);
  for (int i = 0; i < 3; ++i) {
    FlowWorkload w = random_workload(random, 3, 2, 1);
    const auto part = random_workload(random, 3, 2, 1);
    for (auto f : part.flows) {
      f.from += 2;
      f.to += 2;
      w.flows.push_back(f);
    }
    w.ops.insert(w.ops.end(), part.ops.begin() + 1, part.ops.end());
    ASSERT_EQ(w.num_ops(), 5u);
    const auto plan = plan_flows(w, seconds(2));
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(plan->optimal());
    EXPECT_EQ(plan->schedule.makespan, BruteForce(w).run());
  }
}

TEST(FlowPlanner, BoundsAndChecksLargerOnes) {
  Random random(7);
  for (int i = 0; i < 4; ++i) {
    const auto w = random_workload(random, 60, 3, 0.06);
    const auto plan = plan_flows(w, seconds(0.4));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_LE(plan->bound, plan->schedule.makespan);
    EXPECT_GE(plan->bound, flow_bound(w));
    EXPECT_TRUE(check_flows(w, plan->schedule).empty());
  }
}

TEST(FlowPlanner, IsTheSameForASeedWithoutADeadline) {
  Random random(8);
  const auto w = random_workload(random, 14, 3, 0.25);
  const auto a = plan_flows(w, {}), b = plan_flows(w, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->schedule.makespan, b->schedule.makespan);
  EXPECT_EQ(a->schedule.device, b->schedule.device);
  EXPECT_EQ(a->schedule.op_start, b->schedule.op_start);
}

TEST(FlowPlanner, SaysWhenNothingFitsOrNothingIsThere) {
  Random random(9);
  auto w = random_workload(random, 6, 2, 0.3);
  w.memory = {0, 0};
  for (auto& op : w.ops) op.memory = 1;
  EXPECT_EQ(plan_flows(w, seconds(1)).error().code(), Code::kInfeasible);
  w.ops.clear();
  w.flows.clear();
  EXPECT_EQ(plan_flows(w, seconds(1)).error().code(), Code::kInvalidInput);
}

std::string public_data() {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return std::string(shared != nullptr ? shared : "/nonexistent") + "/data/moirai/";
}

// Reference: proven by CP-SAT on the whole problem.
TEST(FlowPlanner, ProvesTheOptimaOfPublicWorkloads) {
  if (const auto solver = cp_sat_self_test(); !solver.ok() && solver.error().code() == Code::kUnsupported)
    GTEST_SKIP() << solver.error().to_string();
  if (!file_exists(public_data() + "example-1.json")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const std::pair<const char*, double> optima[] = {{"example-1", 30}, {"yolov5x", 23.745}};
  for (const auto& [name, optimum] : optima) {
    const auto w = read_flow_workload(public_data() + name + ".json");
    ASSERT_TRUE(w.ok()) << w.error().to_string();
    const auto plan = plan_flows(*w, seconds(60));
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_TRUE(plan->optimal()) << name;
    EXPECT_NEAR(w->in_units(plan->schedule.makespan), optimum, 1e-9) << name;
  }
}

}  // namespace
}  // namespace heddle
