// Emulated devices compared with the evaluator on plans that load parameters: the executor must overlap
// copies, loads and runs as the plan does. All on a simulated clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/random.h"
#include "heddle/base/simulation.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/cold_start.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/executor.h"

namespace heddle {
namespace {

// Two branches of large ops with parameters, joined after each pair. Loads take about as long as runs.
std::shared_ptr<const Graph> branching_graph(int layers, int64_t param_bytes, int64_t tensor_bytes) {
  GraphBuilder builder("branches");
  TensorId at = builder.add_input("in", DType::kU8, {tensor_bytes});
  const auto add = [&](const std::string& name, std::vector<TensorId> inputs) {
    Op op;
    op.name = name;
    op.type = "Test";
    op.inputs = std::move(inputs);
    op.params = {builder.add_param({.name = name + ".w", .bytes = param_bytes})};
    const OpId id = builder.add_op(std::move(op),
                                   {{.name = name + ".out", .dtype = DType::kU8, .shape = {tensor_bytes}}});
    return builder.outputs_of(id)[0];
  };
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    at = add("join" + n, {add("left" + n, {at}), add("right" + n, {at})});
  }
  builder.add_output(at);
  return builder.build().value();
}

struct Case {
  const char* cluster;
  bool host_access, drop, fixed_sharing;
};

// Times of tens of milliseconds: the executor's clock may end each step a pause of its spinning late.
Problem cold_problem(const Case& c, uint64_t seed) {
  Problem problem;
  problem.cluster = load_cluster(std::string("preset:") + c.cluster).value();
  problem.graph = branching_graph(4, 200 << 20, 50 << 20);
  problem.objective = Objective::kColdLatency;
  problem.execution.fixed_sharing = c.fixed_sharing;
  problem.execution.parameter_drops = c.drop;
  auto costs = std::make_shared<CostTable>(problem.graph->num_ops(), problem.cluster->num_devices());
  Random random(seed);
  for (size_t op = 0; op < problem.graph->num_ops(); ++op) {
    for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
      costs->set(OpId(op), DeviceId(d),
                 {.us = random.uniform(10'000, 40'000), .origin = Origin::kGiven, .rel_spread = 0});
    }
  }
  problem.costs = costs;
  if (c.host_access) problem.costs = with_host_access(problem);
  return problem;
}

Plan random_cold_plan(const Problem& problem, bool host_access, uint64_t seed) {
  Random random(seed);
  const auto order = problem.graph->topological_order();
  Assignment a;
  a.order.assign(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    a.device.emplace_back(static_cast<size_t>(random.below(problem.cluster->num_devices())));
    if (host_access) a.host_access.push_back(random.chance(0.3) ? 1 : 0);
  }
  auto plan = build_plan(problem, a);
  EXPECT_TRUE(plan.ok()) << plan.error().to_string();
  return std::move(plan).value();
}

constexpr double kMostDistance = 1e-3;

// Largest distance of a step's start or finish from the evaluator's, as a fraction of the makespan.
double distance(const Timeline& timeline, const RequestTiming& timing) {
  double most = std::fabs(timing.latency_us - timeline.makespan_us);
  for (size_t s = 0; s < timeline.start_us.size(); ++s) {
    most = std::max({most, std::fabs(timing.steps[s].start_us - timeline.start_us[s]),
                     std::fabs(timing.steps[s].finish_us - timeline.finish_us[s])});
  }
  return most / timeline.makespan_us;
}

TEST(EmulatedCold, EveryStepOfAPlanThatLoadsIsWhereTheEvaluatorHasIt) {
  constexpr Case kCases[] = {{"v100", false, false, false},
                             {"v100", true, true, false},
                             {"v100-hetero", true, false, true},
                             {"a6000", false, true, false},
                             {"p4d", true, false, false}};
  uint64_t seed = 1;
  for (const Case& c : kCases) {
    const Problem problem = cold_problem(c, seed);
    const Plan plan = random_cold_plan(problem, c.host_access, seed++);
    const Timeline timeline = evaluate(problem, plan).value();
    ASSERT_TRUE(check(problem, plan, timeline).ok()) << c.cluster;
    const bool loads = std::any_of(plan.steps.begin(), plan.steps.end(),
                                   [](const Step& s) { return s.kind == StepKind::kLoad; });
    ASSERT_TRUE(loads) << c.cluster;
    // The plan must have overlap: without it, execution would take much longer.
    double sum = 0;
    for (size_t s = 0; s < plan.steps.size(); ++s) sum += timeline.finish_us[s] - timeline.start_us[s];
    ASSERT_GT(sum, 1.2 * timeline.makespan_us) << c.cluster;
    const auto executor = Executor::create(problem, plan, nullptr);
    ASSERT_TRUE(executor.ok()) << executor.error().to_string();
    // On a simulated clock: what else the machine does delays no step.
    Simulation simulation({.seed = seed});
    const auto status = simulation.run([&] {
      const auto timing = (*executor)->run();
      ASSERT_TRUE(timing.ok()) << timing.error().to_string();
      for (size_t s = 0; s < plan.steps.size(); ++s) {
        EXPECT_GE(timing->steps[s].start_us, timeline.start_us[s] - 0.01 * static_cast<double>(s + 1));
      }
      EXPECT_LE(distance(timeline, *timing), kMostDistance) << c.cluster;
    });
    EXPECT_TRUE(status.ok()) << status.error().to_string();
  }
}

}  // namespace
}  // namespace heddle
