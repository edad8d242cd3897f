// From where ops of placement workloads run to plans.
#include <algorithm>
#include <map>
#include <tuple>

#include "heddle/plan/placement_workload.h"

namespace heddle {
namespace {

bool is_cpu(const Problem& problem, DeviceId d) {
  return problem.cluster->device(d).kind == DeviceKind::kCpu;
}

// Throughput: ops of one device with as many changes of device on some way to them. Every edge leads to the same
// group or to one with more changes, so that the groups have an order.
std::vector<size_t> changes_before(const Problem& problem, const WorkloadPlacement& placement) {
  std::vector<size_t> changes(problem.graph->num_ops(), 0);
  for (const OpId v : problem.graph->topological_order()) {
    for (const OpId u : problem.graph->predecessors(v)) {
      const bool changes_here = placement.device[u.index()] != placement.device[v.index()];
      changes[v.index()] = std::max(changes[v.index()], changes[u.index()] + (changes_here ? 1 : 0));
    }
  }
  return changes;
}

// Numbers of segments per op, and the segments that follow each other on a device.
struct Groups {
  std::vector<size_t> of_op;
  std::vector<std::vector<OpId>> ops;
  std::vector<std::pair<size_t, size_t>> follows;
};

Groups group_ops(const Problem& problem, const WorkloadPlacement& placement) {
  const size_t n = problem.graph->num_ops();
  const bool latency = problem.objective == Objective::kLatency;
  const auto changes = latency ? std::vector<size_t>() : changes_before(problem, placement);
  using Key = std::tuple<DeviceId, size_t, size_t>;  // device, place on it, op where it is alone
  std::map<Key, size_t> number;
  const auto key = [&](size_t v) {
    const DeviceId d = placement.device[v];
    if (!latency) return Key{d, changes[v], 0};
    if (is_cpu(problem, d)) return Key{d, 0, v + 1};
    return Key{d, placement.piece.empty() ? 0 : static_cast<size_t>(placement.piece[v]), 0};
  };
  for (size_t v = 0; v < n; ++v) number[key(v)] = 0;
  size_t count = 0;
  for (auto& [k, index] : number) index = count++;
  Groups groups;
  groups.ops.resize(count);
  for (size_t v = 0; v < n; ++v) {
    groups.of_op.push_back(number[key(v)]);
    groups.ops[groups.of_op.back()].emplace_back(v);
  }
  for (auto it = number.begin(); it != number.end(); ++it) {
    const auto next = std::next(it);
    const DeviceId d = std::get<0>(it->first);
    if (next != number.end() && std::get<0>(next->first) == d && !(latency && is_cpu(problem, d)))
      groups.follows.emplace_back(it->second, next->second);
  }
  return groups;
}

// Smallest number first among the ready; shorter than the groups where some wait for each other.
std::vector<size_t> order_of(const Problem& problem, const Groups& groups) {
  std::vector<std::vector<size_t>> next(groups.ops.size());
  std::vector<size_t> waiting(groups.ops.size(), 0);
  const auto connect = [&](size_t a, size_t b) {
    next[a].push_back(b);
    ++waiting[b];
  };
  for (const Edge& e : problem.graph->edges()) {
    const size_t a = groups.of_op[e.src.index()], b = groups.of_op[e.dst.index()];
    if (a != b) connect(a, b);
  }
  for (const auto& [a, b] : groups.follows) connect(a, b);
  std::vector<size_t> order;
  for (size_t g = 0; g < waiting.size(); ++g) {
    if (waiting[g] == 0) order.push_back(g);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const size_t b : next[order[i]]) {
      if (--waiting[b] == 0) order.push_back(b);
    }
  }
  return order;
}

std::string segment_name(const Problem& problem, const std::vector<OpId>& ops) {
  if (ops.size() == 1) return problem.graph->op(ops[0]).name;
  return problem.graph->op(ops.front()).name + ".. (" + std::to_string(ops.size()) + " ops)";
}

}  // namespace

Result<Plan> plan_of_placement(const Problem& problem, const WorkloadPlacement& placement) {
  const size_t n = problem.graph->num_ops();
  if (placement.device.size() != n || (!placement.piece.empty() && placement.piece.size() != n))
    return invalid_input("the placement is for " + std::to_string(placement.device.size()) +
                         " ops, the graph has " + std::to_string(n));
  for (const DeviceId d : placement.device) {
    if (!d.valid() || d.index() >= problem.cluster->num_devices())
      return invalid_input("there is no device " + std::to_string(d.value));
  }
  for (const int32_t piece : placement.piece) {
    if (piece < 0) return invalid_input("a piece has the number " + std::to_string(piece));
  }
  const Groups groups = group_ops(problem, placement);
  const auto order = order_of(problem, groups);
  if (order.size() < groups.ops.size())
    return invalid_input("some pieces wait for each other; expected pieces without cycles among them");
  Plan plan;
  for (const size_t g : order) {
    const auto& ops = groups.ops[g];
    const DeviceId d = placement.device[ops.front().index()];
    plan.steps.push_back({StepKind::kRun, SegmentId(plan.segments.size()), TensorId(), d, d, -1});
    plan.segments.push_back({segment_name(problem, ops), ops, d});
  }
  return plan;
}

}  // namespace heddle
