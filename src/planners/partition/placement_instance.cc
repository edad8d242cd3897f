#include "placement_instance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/not_modelled.h"
#include "heddle/plan/checker.h"

namespace heddle {
namespace {

Error not_equal(const Problem& problem, DeviceId a, DeviceId b) {
  return unsupported("devices '" + problem.cluster->device(a).name + "' and '" +
                     problem.cluster->device(b).name +
                     "' differ in memory or times; placement-search needs accelerators that "
                     "are alike, and CPUs that are alike");
}

bool are_alike(const Problem& problem, DeviceId a, DeviceId b) {
  const Cluster& cluster = *problem.cluster;
  const auto memory = [&](DeviceId d) { return cluster.memory_pool_bytes(cluster.memory_pool(d)); };
  if (memory(a) != memory(b)) return false;
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    if (problem.costs->us(OpId(v), a) != problem.costs->us(OpId(v), b)) return false;
  }
  return true;
}

constexpr std::string_view kPlanner = "placement-search";

// What its methods compute with, and would be wrong about otherwise.
Status check_model(const Problem& problem, std::span<const DeviceId> accelerators) {
  const Graph& graph = *problem.graph;
  for (const Op& op : graph.ops()) {
    size_t read = 0;
    for (const TensorId t : op.outputs) read += graph.tensor(t).consumers.empty() ? 0 : 1;
    if (read > 1)
      return not_modelled(kPlanner, "op with several outputs that others read, such as '" + op.name + "'");
  }
  return check_modelled(problem, accelerators, kPlanner);
}

}  // namespace

Result<PlacementInstance> PlacementInstance::make(const Problem& problem) {
  PlacementInstance instance;
  instance.problem_ = &problem;
  std::vector<DeviceId> accelerators, cpus;
  for (const DeviceId d : problem.usable_devices())
    (problem.moves_tensors(d) ? accelerators : cpus).push_back(d);
  for (const auto& kind : {accelerators, cpus}) {
    for (const DeviceId d : kind) {
      if (!are_alike(problem, kind.front(), d)) return not_equal(problem, kind.front(), d);
    }
  }
  if (instance.is_latency() && (cpus.empty() || instance.pieces() < 1 || !problem.execution.unlimited_cpus))
    return unsupported(
        "placement-search needs CPUs without a limit and a most number of segments per accelerator "
        "for the objective latency");
  HEDDLE_RETURN_IF_ERROR(check_model(problem, accelerators));
  PlacementGraph& w = instance.workload_;
  const Graph& graph = *problem.graph;
  w.name = graph.name();
  w.accelerators = static_cast<int>(accelerators.size());
  w.cpus = static_cast<int>(cpus.size());
  w.accelerator_bytes = std::numeric_limits<double>::infinity();
  if (!accelerators.empty()) {
    const int pool = problem.cluster->memory_pool(accelerators.front());
    if (const int64_t limit = problem.cluster->memory_pool_bytes(pool); limit > 0)
      w.accelerator_bytes = static_cast<double>(limit);
  }
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    const OpId op(v);
    PlacementNode& node = w.nodes.emplace_back();
    if (!cpus.empty()) node.cpu = problem.costs->us(op, cpus.front());
    if (!std::isfinite(node.cpu)) return unsupported("op '" + graph.op(op).name + "' cannot run on CPUs");
    const double us = accelerators.empty() ? kImpossible : problem.costs->us(op, accelerators.front());
    node.on_accelerator = std::isfinite(us);
    node.accelerator = node.on_accelerator ? us : 0;
    for (const TensorId t : graph.op(op).outputs) node.cost += problem.transfers->us[t.index()];
    for (const ParamId p : graph.op(op).params) node.bytes += static_cast<double>(graph.param(p).bytes);
    if (problem.rules && !problem.rules->colour.empty()) node.colour = problem.rules->colour[v];
    if (problem.rules && !problem.rules->backward.empty()) node.backward = problem.rules->backward[v] != 0;
    w.colours = std::max(w.colours, node.colour + 1);
  }
  w.out.resize(w.nodes.size());
  w.in.resize(w.nodes.size());
  for (const Edge& e : graph.edges()) {
    w.edges.emplace_back(e.src.value, e.dst.value);
    w.out[e.src.index()].push_back(e.dst.value);
    w.in[e.dst.index()].push_back(e.src.value);
  }
  for (const OpId v : graph.topological_order()) w.order.push_back(v.value);
  instance.devices_ = std::move(accelerators);
  instance.devices_.insert(instance.devices_.end(), cpus.begin(), cpus.end());
  return instance;
}

Result<Plan> PlacementInstance::plan_of(const PlacementSplit& split) const {
  WorkloadPlacement placement;
  placement.piece = split.piece;
  for (const int32_t d : split.device) placement.device.push_back(devices_[static_cast<size_t>(d)]);
  return plan_of_placement(*problem_, placement);
}

std::optional<double> PlacementInstance::value_us(const PlacementSplit& split) const {
  const auto plan = plan_of(split);
  if (!plan.ok()) return std::nullopt;
  const auto timeline = evaluate(*problem_, *plan, {.critical = false, .resources = false});
  if (!timeline.ok() || !check(*problem_, *plan, *timeline).ok()) return std::nullopt;
  return objective_us(*problem_, *timeline);
}

}  // namespace heddle
