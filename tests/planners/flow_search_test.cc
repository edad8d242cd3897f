// Flow search: exact small cases against brute force, random ones, the public data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/file.h"
#include "heddle/plan/problem_edit.h"
#include "moirai/flow_instance.h"
#include "plan/workload_support.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

// Every device of each op, every topological order of all tasks, timed by the evaluator.
class BruteForce {
 public:
  explicit BruteForce(const Problem& p)
      : problem_(p), instance_(must(FlowInstance::make(p))), w_(instance_.workload), evaluator_(p) {}
  double run() {
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
      const auto timeline =
          evaluator_.evaluate(instance_.plan_of(problem_, d_), {.critical = false, .resources = false});
      best_ = std::min(best_, must(Result(timeline)).makespan_us);
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
      orders();
      d_.order.pop_back();
      done_[task] = false;
      // What holds nothing has no order to try.
      const bool idle = task >= n && !w_.crosses(task - n, d_.device[w_.flows[task - n].from],
                                                 d_.device[w_.flows[task - n].to]);
      if (idle) return;
    }
  }
  const Problem& problem_;
  const FlowInstance instance_;
  const FlowWorkload& w_;
  Evaluator evaluator_;
  FlowDecisions d_;
  std::vector<bool> done_;
  double best_ = std::numeric_limits<double>::infinity();
};

Result<PlanResult> search(const Problem& problem, double seconds) {
  PlannerOptions o;
  if (seconds > 0) o.deadline = Deadline::after_seconds(seconds);
  return run_planner(*find_planner("flow-search"), problem, o);
}

// Its ports send one flow at a time: of transfers that may pass each other it would prove too much.
TEST(FlowSearch, RefusesWhatItsModelDoesNotHave) {
  Random random(6);
  Problem p = must(flow_workload_from_json(random_flow_json(random, {}))).problem;
  EXPECT_TRUE(FlowInstance::make(p).ok());
  p.execution.engine_contention = false;
  const auto refused = search(p, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("transfers that pass each other"), std::string::npos);
}

TEST(FlowSearch, FindsAndProvesTheOptimumOfSmallWorkloads) {
  HEDDLE_NEEDS_CP_SAT;
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    Json json = random_flow_json(random, {});
    if (i % 3 == 0) {
      double total = 0;
      for (const auto& op : json["ops"]) total += op["memory"].get<double>();
      for (auto& device : json["devices"]) device["memory"] = std::ceil(total / 2) + 1;
    }
    const Problem p = must(flow_workload_from_json(json)).problem;
    const double best = BruteForce(p).run();
    const auto plan = search(p, 0);
    if (std::isinf(best)) {
      EXPECT_EQ(plan.error().code(), Code::kInfeasible);
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->value_us, best) << i;
    EXPECT_EQ(plan->bound.us, best) << i;
    EXPECT_EQ(plan->stop, StopReason::kOptimal);
  }
}

// A workload whose ops all pass through serial ones: the answer of the blocks is that of the whole program.
TEST(FlowSearch, BlocksGiveTheOptimumOfTheWhole) {
  HEDDLE_NEEDS_CP_SAT;
  Random random(6);
  for (int i = 0; i < 3; ++i) {
    Json json = random_flow_json(random, {.ops = 3, .edge_probability = 1});
    const Json part = random_flow_json(random, {.ops = 3, .edge_probability = 1});
    for (auto edge : part["edges"]) {
      edge["src"] = edge["src"].get<int>() + 2;
      edge["dst"] = edge["dst"].get<int>() + 2;
      json["edges"].push_back(edge);
    }
    for (int v = 1; v < 3; ++v) {
      json["ops"].push_back(part["ops"][static_cast<size_t>(v)]);
      json["ops"].back()["id"] = v + 2;
    }
    const Problem p = must(flow_workload_from_json(json)).problem;
    ASSERT_EQ(p.graph->num_ops(), 5u);
    const auto plan = search(p, 0);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->stop, StopReason::kOptimal);
    EXPECT_EQ(plan->value_us, BruteForce(p).run());
  }
}

TEST(FlowSearch, BoundsAndChecksLargerOnes) {
  Random random(7);
  for (int i = 0; i < 4; ++i) {
    const Problem p = random_flow_problem(random, {.ops = 60, .devices = 3, .edge_probability = 0.06});
    const auto plan = search(p, 0.4);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    const auto instance = must(FlowInstance::make(p));
    EXPECT_GE(plan->bound.us, instance.workload.in_us(flow_bound(instance.workload)));
  }
}

// Times that are no decimal fractions, here thirds, are rounded down for the search: the bound still holds and
// the plan is timed as it is.
TEST(FlowSearch, PlansTimesThatAreNoDecimalFractions) {
  Random random(10);
  const Problem whole = random_flow_problem(random, {.ops = 8, .devices = 3, .edge_probability = 0.4});
  Problem thirds = whole;
  for (const char* name : {"device0", "device1", "device2"})
    thirds = must(edit_problem(thirds, {.cluster = {.scale = name, .factor = 3}}));
  thirds = must(edit_problem(thirds, {.transfers = 3}));
  const auto plan = search(thirds, 0), three_times = search(whole, 0);
  ASSERT_TRUE(plan.ok() && three_times.ok()) << plan.error().to_string();
  EXPECT_NEAR(plan->value_us, three_times->value_us / 3, 1e-6);
  EXPECT_LT(plan->gap, 1e-6);
}

TEST(FlowSearch, IsTheSameForASeedWithoutADeadline) {
  Random random(8);
  const Problem p = random_flow_problem(random, {.ops = 14, .devices = 3, .edge_probability = 0.25});
  const auto a = search(p, 0), b = search(p, 0);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->value_us, b->value_us);
  EXPECT_EQ(a->timeline.start_us, b->timeline.start_us);
}

TEST(FlowSearch, SaysWhenNothingFitsOrTheProblemIsOfAnotherKind) {
  Random random(9);
  Json json = random_flow_json(random, {.ops = 6, .edge_probability = 0.3, .memory = 0});
  for (auto& op : json["ops"]) op["memory"] = 1;
  EXPECT_EQ(search(must(flow_workload_from_json(json)).problem, 1).error().code(), Code::kInfeasible);
  const auto on_routes =
      make_problem(make_graph(2, {}), make_mesh(1), random_times(random, 2, 1), Objective::kLatency);
  const auto refused = search(on_routes, 1);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_NE(refused.error().message().find("transfers are \"routes\""), std::string::npos);
}

// Reference: proven by CP-SAT on the whole problem.
TEST(FlowSearch, ProvesTheOptimaOfPublicWorkloads) {
  HEDDLE_NEEDS_CP_SAT;
  const std::string folder = public_data("moirai");
  if (!file_exists(folder + "example-1.json")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const std::pair<const char*, double> optima[] = {{"example-1", 30}, {"yolov5x", 23.745}};
  for (const auto& [name, optimum] : optima) {
    const auto file = read_flow_workload(folder + name + ".json");
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    const auto plan = search(file->problem, 0);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    EXPECT_EQ(plan->stop, StopReason::kOptimal) << name;
    EXPECT_NEAR(plan->value_us / file->us_per_unit, optimum, 1e-9) << name;
  }
}

}  // namespace
}  // namespace heddle
