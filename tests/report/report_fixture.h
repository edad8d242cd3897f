// A small planned problem for the report's tests: a diamond on two devices and a slow link between them.
#pragma once

#include <gtest/gtest.h>

#include "heddle/cost/cost_model.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/run_record.h"

namespace heddle {

struct Planned {
  Problem problem;
  Plan plan;
  Timeline timeline;
  Bound bound;
};

inline Op named_op(const std::string& name, std::vector<TensorId> inputs, double us) {
  Op op;
  op.name = name;
  op.type = "Work";
  op.inputs = std::move(inputs);
  op.given_times = {{"fast", us}, {"slow", 2 * us}};
  return op;
}

inline Tensor named_tensor(const std::string& name, int64_t floats) {
  Tensor t;
  t.name = name;
  t.shape = {floats};
  return t;
}

// a (10 us on fast) feeds b (30) and c<&> (20); both feed d (5). Tensors of 4,000 bytes take 1 + 4 us over
// the link.
inline Planned planned_diamond(std::vector<int> device = {0, 0, 1, 0}) {
  GraphBuilder graph("diamond <&>");
  const auto a = graph.add_op(named_op("a", {}, 10), {named_tensor("ta", 1000)});
  const auto ta = graph.outputs_of(a)[0];
  const auto b = graph.add_op(named_op("b", {ta}, 30), {named_tensor("tb", 1000)});
  const auto c = graph.add_op(named_op("c<&>", {ta}, 20), {named_tensor("tc", 1000)});
  const auto tb = graph.outputs_of(b)[0], tc = graph.outputs_of(c)[0];
  graph.add_op(named_op("d", {tb, tc}, 5), {named_tensor("td", 1000)});
  ClusterBuilder cluster("pair");
  const auto host = cluster.add_host({"host", 0});
  Device fast, slow, idle;
  fast.name = "gpu0";
  fast.device_class = "fast";
  slow.name = "gpu1";
  slow.device_class = "slow";
  idle.name = "gpu2";
  idle.device_class = "slow";
  fast.host = slow.host = idle.host = host;
  const auto d0 = cluster.add_device(fast), d1 = cluster.add_device(slow);
  cluster.add_device(idle);
  cluster.add_link({.name = "wire",
                    .a = cluster.device_node(d0),
                    .b = cluster.device_node(d1),
                    .bytes_per_s = 1e9,
                    .latency_us = 1});
  Planned p;
  p.problem.graph = graph.build().value();
  p.problem.cluster = cluster.build().value();
  p.problem.devices = {DeviceId(0), DeviceId(1)};
  p.problem.costs = std::make_shared<const CostTable>(
      build_cost_table(*p.problem.graph, *p.problem.cluster, *given_cost_model(), {}).value());
  Assignment assignment;
  for (const int d : device) assignment.device.emplace_back(d);
  for (int i = 0; i < 4; ++i) assignment.order.emplace_back(i);
  p.plan = build_plan(p.problem, assignment).value();
  p.timeline = evaluate(p.problem, p.plan).value();
  p.bound = lower_bound(p.problem);
  return p;
}

inline RunRecord slower_by_ten_percent(const Planned& p) {
  RunRecord run;
  run.repeats = 3;
  run.predicted_us = p.timeline.makespan_us;
  run.measured_us = 1.1 * p.timeline.makespan_us;
  for (size_t i = 0; i < p.plan.steps.size(); ++i) {
    const double start = 1.1 * p.timeline.start_us[i], finish = 1.1 * p.timeline.finish_us[i];
    run.steps.push_back({start, finish, finish - start, 0.01});
  }
  return run;
}

}  // namespace heddle
