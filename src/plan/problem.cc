#include "heddle/plan/problem.h"

#include <cmath>

namespace heddle {
namespace {

Error invalid(std::string message) { return Error(Code::kInvalidInput, std::move(message)); }

std::string device_text(const Cluster& cluster, size_t d) { return "'" + cluster.devices()[d].name + "'"; }

Status validate_sizes(const Problem& p) {
  if (!p.graph || !p.cluster || !p.costs) return invalid("a problem needs a graph, a cluster and costs");
  if (p.graph->num_ops() == 0)
    return invalid("graph '" + p.graph->name() + "' has no ops: there is nothing to plan");
  if (p.cluster->num_devices() == 0)
    return invalid("cluster '" + p.cluster->name() + "' has no devices: add one");
  if (p.costs->num_devices() != p.cluster->num_devices() || p.costs->num_ops() != p.graph->num_ops()) {
    return invalid("the cost table is for " + std::to_string(p.costs->num_ops()) + " ops on " +
                   std::to_string(p.costs->num_devices()) + " devices, but graph and cluster have " +
                   std::to_string(p.graph->num_ops()) + " and " + std::to_string(p.cluster->num_devices()));
  }
  if (p.batch < 1) return invalid("batch is " + std::to_string(p.batch) + ", expected at least 1");
  return {};
}

Status validate_devices(const Problem& p) {
  for (size_t i = 0; i < p.devices.size(); ++i) {
    const DeviceId d = p.devices[i];
    if (!d.valid() || d.index() >= p.cluster->num_devices()) {
      return invalid("usable device " + std::to_string(d.value) + " is not among the cluster's " +
                     std::to_string(p.cluster->num_devices()) + " devices");
    }
    if (i > 0 && !(p.devices[i - 1] < d)) return invalid("usable devices must be ascending and distinct");
  }
  return {};
}

Status validate_op_costs(const Problem& p) {
  const auto usable = p.usable_devices();
  for (size_t v = 0; v < p.graph->num_ops(); ++v) {
    const OpId op(v);
    const auto row = p.costs->row(op);
    for (size_t d = 0; d < row.size(); ++d) {
      if (std::isnan(row[d]) || row[d] < 0) {
        return invalid("op '" + p.graph->op(op).name + "' has the time " + std::to_string(row[d]) +
                       " us on " + device_text(*p.cluster, d) + ", expected a number of at least 0");
      }
    }
    bool runs = false;
    for (const DeviceId d : usable) runs = runs || std::isfinite(row[d.index()]);
    if (!runs) {
      return Error(Code::kInfeasible,
                   "op '" + p.graph->op(op).name + "' (" + p.graph->op(op).type +
                       ") runs on none of the usable devices: allow another device or give it a cost");
    }
  }
  return {};
}

Status validate_segment_costs(const Problem& p) {
  for (const SegmentCost& s : p.costs->segments()) {
    bool good =
        !s.ops.empty() && s.device.valid() && s.device.index() < p.cluster->num_devices() && s.cost.us >= 0;
    for (size_t i = 0; good && i < s.ops.size(); ++i) {
      good = s.ops[i].valid() && s.ops[i].index() < p.graph->num_ops() && (i == 0 || s.ops[i - 1] < s.ops[i]);
    }
    if (!good) return invalid("a known segment's cost has ids out of range, unsorted ops or a negative time");
  }
  return {};
}

}  // namespace

const char* objective_name(Objective objective) {
  switch (objective) {
    case Objective::kLatency:
      return "latency";
    case Objective::kColdLatency:
      return "cold-latency";
    case Objective::kThroughput:
      return "throughput";
  }
  return "?";
}

std::optional<Objective> objective_from_name(std::string_view name) {
  for (const Objective o : {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput}) {
    if (name == objective_name(o)) return o;
  }
  return std::nullopt;
}

bool Problem::may_use(DeviceId device) const {
  if (!device.valid() || device.index() >= cluster->num_devices()) return false;
  if (devices.empty()) return true;
  for (const DeviceId d : devices) {
    if (d == device) return true;
  }
  return false;
}

std::vector<DeviceId> Problem::usable_devices() const {
  if (!devices.empty()) return devices;
  std::vector<DeviceId> all;
  for (size_t d = 0; d < cluster->num_devices(); ++d) all.emplace_back(d);
  return all;
}

Passage passage(const Cluster& cluster, DeviceId from, DeviceId to) {
  if (from == to) return Passage::kFree;
  const Route* route = cluster.route(from, to);
  const bool one_memory = cluster.memory_pool(from) == cluster.memory_pool(to);
  if (one_memory && (route == nullptr || route->hops.empty())) return Passage::kFree;
  return route == nullptr ? Passage::kNone : Passage::kRoute;
}

double transfer_us(const Cluster& cluster, DeviceId from, DeviceId to, int64_t bytes) {
  switch (passage(cluster, from, to)) {
    case Passage::kFree:
      return 0;
    case Passage::kRoute:
      return cluster.route(from, to)->time_us(bytes);
    case Passage::kNone:
      break;
  }
  return kImpossible;
}

bool needs_load(const Cluster& cluster, DeviceId device) {
  return cluster.device(device).kind != DeviceKind::kCpu;
}

Status validate(const Problem& problem) {
  HEDDLE_RETURN_IF_ERROR(validate_sizes(problem));
  HEDDLE_RETURN_IF_ERROR(validate_devices(problem));
  HEDDLE_RETURN_IF_ERROR(validate_op_costs(problem));
  return validate_segment_costs(problem);
}

}  // namespace heddle
