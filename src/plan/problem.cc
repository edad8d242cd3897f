#include "heddle/plan/problem.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/spelling.h"
#include "heddle/graph/model.h"

namespace heddle {
namespace {

// In the enums' order.
constexpr const char* kObjectiveNames[] = {"latency", "cold-latency", "throughput"};
constexpr const char* kTransfersNames[] = {"routes", "given", "within-runs"};

bool has_param_bytes(const Graph& graph, OpId op) {
  for (const ParamId p : graph.op(op).params) {
    if (graph.param(p).bytes > 0) return true;
  }
  return false;
}

std::string device_text(const Cluster& cluster, size_t d) { return "'" + cluster.devices()[d].name + "'"; }

Status validate_sizes(const Problem& p) {
  if (!p.graph || !p.cluster || !p.costs)
    return invalid_input("a problem needs a graph, a cluster and costs");
  if (p.graph->num_ops() == 0)
    return invalid_input("graph '" + p.graph->name() + "' has no ops: there is nothing to plan");
  if (p.cluster->num_devices() == 0)
    return invalid_input("cluster '" + p.cluster->name() + "' has no devices: add one");
  if (p.costs->num_devices() != p.cluster->num_devices() || p.costs->num_ops() != p.graph->num_ops()) {
    return invalid_input("the cost table is for " + std::to_string(p.costs->num_ops()) + " ops on " +
                         std::to_string(p.costs->num_devices()) + " devices, but graph and cluster have " +
                         std::to_string(p.graph->num_ops()) + " and " +
                         std::to_string(p.cluster->num_devices()));
  }
  if (p.execution.stage_width < 1) {
    return invalid_input("stage width is " + std::to_string(p.execution.stage_width) +
                         ", expected at least 1");
  }
  if (p.batch < 1) return invalid_input("batch is " + std::to_string(p.batch) + ", expected at least 1");
  return {};
}

Status validate_devices(const Problem& p) {
  for (size_t i = 0; i < p.devices.size(); ++i) {
    const DeviceId d = p.devices[i];
    if (!d.valid() || d.index() >= p.cluster->num_devices()) {
      return invalid_input("usable device " + std::to_string(d.value) + " is not among the cluster's " +
                           std::to_string(p.cluster->num_devices()) + " devices");
    }
    if (i > 0 && !(p.devices[i - 1] < d))
      return invalid_input("usable devices must be ascending and distinct");
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
        return invalid_input("op '" + p.graph->op(op).name + "' has the time " + std::to_string(row[d]) +
                             " us on " + device_text(*p.cluster, d) + ", expected a number of at least 0");
      }
    }
    bool runs = false;
    for (const DeviceId d : usable) runs = runs || std::isfinite(row[d.index()]);
    if (!runs) {
      return infeasible("op '" + p.graph->op(op).name + "' (" + p.graph->op(op).type +
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
    if (!good)
      return invalid_input("a known segment's cost has ids out of range, unsorted ops or a negative time");
  }
  return {};
}

Status validate_core_taken(const Problem& p) {
  for (size_t d = 0; d < p.cluster->num_devices() && p.costs->has_core_taken(); ++d) {
    const double factor = p.costs->core_taken(DeviceId(d));
    if (factor != 0 && !(std::isfinite(factor) && factor >= 1))
      return invalid_input(device_text(*p.cluster, d) + " is " + std::to_string(factor) +
                           " times as slow without one of its cores; expected at least 1");
  }
  return {};
}

Status validate_stage_models(const Problem& p) {
  for (size_t d = 0; d < p.cluster->num_devices() && p.costs->has_stage_models(); ++d) {
    const StageModel m = p.costs->stage_model(DeviceId(d));
    const auto good = [](double x) { return std::isfinite(x) && x >= 0; };
    if (!good(m.serial) || !good(m.overlap) || !good(m.launch_us)) {
      return invalid_input("the stage model of " + device_text(*p.cluster, d) +
                           " has a number that is negative or not finite");
    }
  }
  for (size_t v = 0; v < p.costs->num_ops() && p.costs->has_utilizations(); ++v) {
    for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
      const double u = p.costs->utilization(OpId(v), DeviceId(d));
      if (!(u >= 0 && u <= 1)) {
        return invalid_input("op '" + p.graph->ops()[v].name + "' has the utilization " + std::to_string(u) +
                             " on " + device_text(*p.cluster, d) + ", expected 0 to 1");
      }
    }
  }
  return {};
}

Status validate_host_access(const Problem& p) {
  for (size_t v = 0; v < p.graph->num_ops() && p.costs->has_host_access(); ++v) {
    const OpId op(v);
    for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
      const double us = p.costs->host_access_us(op, DeviceId(d));
      if (std::isnan(us) || us < 0) {
        return invalid_input("op '" + p.graph->op(op).name + "' has the time " + std::to_string(us) +
                             " us on " + device_text(*p.cluster, d) +
                             " with direct host access, expected a number of at least 0");
      }
    }
  }
  return {};
}

Status validate_cold_start(const Problem& p) {
  if (p.execution.fixed_sharing && p.objective == Objective::kThroughput)
    return invalid_input("fixed sharing factors are for latencies only: throughput needs links that hold");
  if (p.resident.empty()) return {};
  if (p.resident.size() != static_cast<size_t>(p.cluster->num_memory_pools())) {
    return invalid_input("resident parameters are given for " + std::to_string(p.resident.size()) +
                         " memories, the cluster has " + std::to_string(p.cluster->num_memory_pools()));
  }
  std::vector<uint8_t> loads(p.resident.size(), 0);
  for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
    if (needs_load(*p.cluster, DeviceId(d)))
      loads[static_cast<size_t>(p.cluster->memory_pool(DeviceId(d)))] = 1;
  }
  for (size_t pool = 0; pool < p.resident.size(); ++pool) {
    const auto& list = p.resident[pool];
    if (!list.empty() && !loads[pool])
      return invalid_input("parameters are in host memory anyway: only other memories have resident ones");
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].valid() || list[i].index() >= p.graph->num_params() || (i > 0 && !(list[i - 1] < list[i])))
        return invalid_input("resident parameters must exist, ascending and each once in a memory");
    }
  }
  return {};
}

// Transfers::kGiven: 0 where the tensors have no list of matrices or one has a number out of order.
size_t count_matrices(const Problem& p) {
  if (p.transfers->matrix.size() != p.graph->num_tensors()) return 0;
  int32_t next = 0;
  for (const int32_t m : p.transfers->matrix) {
    if (m >= 0 && m != next++) return 0;
  }
  return static_cast<size_t>(next);
}

Status validate_matrices(const Problem& p) {
  const size_t devices = p.cluster->num_devices();
  if (p.transfers->matrix.size() != p.graph->num_tensors())
    return invalid_input("times of transfers are given for another number of tensors");
  for (size_t t = 0; t < p.graph->num_tensors(); ++t) {
    const TensorId tensor(t);
    if (p.graph->tensor(tensor).consumers.size() > 1)
      return invalid_input("tensor '" + p.graph->tensor(tensor).name +
                           "' has several readers; where times are given, each edge has its own tensor");
    if (p.transfers->us.empty() && !p.is_order_only(tensor))
      return invalid_input("matrices of transfers must be numbered from 0 in the tensors' order");
    for (size_t d = 0; d < devices && !p.is_order_only(tensor); ++d) {
      if (p.given_transfer_us(tensor, DeviceId(d), DeviceId(d)) != 0)
        return invalid_input("the time from a device to itself must be 0");
    }
  }
  return {};
}

Status validate_transfers(const Problem& p) {
  const Transfers kind = p.execution.transfers;
  if ((kind == Transfers::kRoutes) != (p.transfers == nullptr))
    return invalid_input("times of transfers belong to transfers that are \"given\" or \"within-runs\"");
  if (p.execution.unlimited_cpus && p.objective != Objective::kLatency)
    return invalid_input("CPUs that run any number of segments at once are for the latency objective only");
  if (p.execution.unlimited_cpus && kind != Transfers::kWithinRuns)
    return invalid_input("CPUs that run any number of segments at once need transfers \"within-runs\"");
  if (kind == Transfers::kRoutes) return {};
  if (p.objective == Objective::kColdLatency)
    return invalid_input("a cold start loads over routes; transfers with given times are for the others");
  if (p.execution.stage_width > 1)
    return invalid_input("transfers with given times know no stages: stage width must be 1");
  const size_t tensors = p.graph->num_tensors(), devices = p.cluster->num_devices();
  const size_t wanted = kind == Transfers::kWithinRuns ? tensors : count_matrices(p) * devices * devices;
  if (p.transfers->us.size() != wanted || (kind == Transfers::kWithinRuns && !p.transfers->matrix.empty()))
    return invalid_input("there are " + std::to_string(p.transfers->us.size()) +
                         " times of transfers, expected " + std::to_string(wanted));
  for (const double us : p.transfers->us) {
    if (!std::isfinite(us) || us < 0) return invalid_input("the time of a transfer is negative or infinite");
  }
  return kind == Transfers::kGiven ? validate_matrices(p) : Status();
}

Status validate_rules(const Problem& p) {
  if (p.rules == nullptr) return {};
  if (p.execution.transfers != Transfers::kWithinRuns)
    return invalid_input(
        "rules of placement need transfers \"within-runs\": no planner obeys them otherwise");
  const size_t ops = p.graph->num_ops();
  const auto fits = [&](size_t size) { return size == 0 || size == ops; };
  if (!fits(p.rules->colour.size()) || !fits(p.rules->backward.size()))
    return invalid_input("rules of placement are for another number of ops than " + std::to_string(ops));
  for (const int32_t colour : p.rules->colour) {
    if (colour < -1) return invalid_input("a colour is below -1");
  }
  if (p.rules->most_segments < 0) return invalid_input("the most segments of a device are below 0");
  return {};
}

}  // namespace

ImportOptions import_options(const ModelReference& reference) {
  ImportOptions options;
  options.shapes.insert(reference.shapes.begin(), reference.shapes.end());
  options.batch = reference.batch;
  options.split_bytes = reference.split_bytes;
  options.values = reference.values;
  return options;
}

const char* objective_name(Objective objective) { return kObjectiveNames[static_cast<size_t>(objective)]; }

std::optional<Objective> objective_from_name(std::string_view name) {
  return enum_named<Objective>(kObjectiveNames, name);
}

const char* transfers_name(Transfers transfers) { return kTransfersNames[static_cast<size_t>(transfers)]; }

std::optional<Transfers> transfers_from_name(std::string_view name) {
  return enum_named<Transfers>(kTransfersNames, name);
}

bool Problem::may_use(DeviceId device) const {
  if (!device.valid() || device.index() >= cluster->num_devices()) return false;
  return devices.empty() || std::binary_search(devices.begin(), devices.end(), device);
}

std::vector<DeviceId> Problem::usable_devices() const {
  if (!devices.empty()) return devices;
  std::vector<DeviceId> all;
  for (size_t d = 0; d < cluster->num_devices(); ++d) all.emplace_back(d);
  return all;
}

std::vector<uint8_t> Problem::closed_nodes() const {
  std::vector<uint8_t> closed(cluster->nodes().size(), 0);
  for (size_t d = 0; d < cluster->num_devices(); ++d) closed[cluster->device_node(DeviceId(d)).index()] = 1;
  for (const DeviceId d : usable_devices()) closed[cluster->device_node(d).index()] = 0;
  for (size_t h = 0; h < cluster->hosts().size(); ++h) closed[cluster->host_node(HostId(h)).index()] = 0;
  return closed;
}

bool Problem::is_resident(int pool, ParamId param) const {
  if (resident.empty()) return false;
  const auto& list = resident[static_cast<size_t>(pool)];
  return std::binary_search(list.begin(), list.end(), param);
}

bool Problem::has_host_access() const {
  return objective == Objective::kColdLatency && costs->has_host_access();
}

bool PrecisionChoice::forbids(OpId op, Precision type) const {
  return std::any_of(units.begin(), units.end(),
                     [&](const Unit& u) { return u.op == op && u.type == type && !u.allowed; });
}

Passage passage(const Cluster& cluster, DeviceId from, DeviceId to) {
  if (from == to) return Passage::kFree;
  const Route* route = cluster.route(from, to);
  const bool one_memory = cluster.memory_pool(from) == cluster.memory_pool(to);
  if (one_memory && (route == nullptr || route->hops.empty())) return Passage::kFree;
  return route == nullptr ? Passage::kNone : Passage::kRoute;
}

double transfer_us(const Cluster& cluster, DeviceId from, DeviceId to, int64_t bytes) {
  const Passage how = passage(cluster, from, to);
  if (how == Passage::kFree) return 0;
  return how == Passage::kRoute ? cluster.route(from, to)->time_us(bytes) : kImpossible;
}

bool needs_load(const Cluster& cluster, DeviceId device) {
  return cluster.device(device).kind != DeviceKind::kCpu;
}

double sharing_factor(const Cluster& cluster, std::span<const Hop> hops) {
  constexpr double kDirectLink = 1.5;
  if (hops.size() == 1 && !cluster.link(hops[0].link).bus.valid()) return kDirectLink;
  double devices = 0;
  for (size_t d = 0; d < cluster.num_devices(); ++d) devices += needs_load(cluster, DeviceId(d));
  return std::max(1.0, devices);
}

double host_sharing_factor(const Cluster& cluster, DeviceId device) {
  const Route* own = cluster.load_route(device);
  double sharers = 0;
  for (size_t d = 0; own != nullptr && d < cluster.num_devices(); ++d) {
    const Route* other = cluster.load_route(DeviceId(d));
    if (other == nullptr || !needs_load(cluster, DeviceId(d))) continue;
    bool shares = DeviceId(d) == device;
    for (const Hop& a : own->hops) {
      for (const Hop& b : other->hops) {
        const BusId bus = cluster.link(a.link).bus;
        shares = shares || a.link == b.link || (bus.valid() && bus == cluster.link(b.link).bus);
      }
    }
    sharers += shares;
  }
  return 2 * std::max(1.0, sharers);
}

double host_access_us(const Problem& problem, OpId op, DeviceId device) {
  const Cluster& cluster = *problem.cluster;
  if (!problem.has_host_access() || !needs_load(cluster, device) || cluster.load_route(device) == nullptr)
    return kImpossible;
  if (!has_param_bytes(*problem.graph, op)) return problem.costs->us(op, device);
  const double us = problem.costs->host_access_us(op, device);
  return problem.execution.fixed_sharing ? us * host_sharing_factor(cluster, device) : us;
}

Status validate(const Problem& problem) {
  for (const auto part :
       {validate_sizes, validate_devices, validate_op_costs, validate_segment_costs, validate_stage_models,
        validate_core_taken, validate_host_access, validate_cold_start, validate_transfers, validate_rules}) {
    HEDDLE_RETURN_IF_ERROR(part(problem));
  }
  return {};
}

}  // namespace heddle
