// What is to be planned: graph, cluster, costs, objective and how the hardware executes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/graph.h"

namespace heddle {

enum class Objective {
  kLatency,      // makespan of one request, parameters resident
  kColdLatency,  // makespan of one request, parameters in host memory: loads are part of the plan
  kThroughput,   // requests per second in the steady state, parameters resident
};
const char* objective_name(Objective objective);  // "latency", "cold-latency", "throughput"
std::optional<Objective> objective_from_name(std::string_view name);

// What a transfer occupies for its whole duration, beside time. A device always runs one segment at a time,
// and so do devices that share cores.
struct ExecutionModel {
  bool link_contention = true;    // each link (direction) and bus on the route
  bool engine_contention = true;  // a copy engine at the source and at the destination device
};

// The real model behind a problem, so that a plan can be run.
struct ModelReference {
  std::string path;
  uint64_t file_hash = 0;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::optional<int64_t> batch;
};

// Values are shared and immutable: copying a Problem is cheap. `graph`, `cluster` and `costs` are never null
// in a validated problem.
struct Problem {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const CostTable> costs;
  Objective objective = Objective::kLatency;
  ExecutionModel execution;
  int batch = 1;
  std::vector<DeviceId> devices;  // the ones a plan may use, ascending; empty: all
  std::optional<ModelReference> model;

  bool may_use(DeviceId device) const;
  std::vector<DeviceId> usable_devices() const;
};

// How a tensor comes from one device to another.
enum class Passage : uint8_t {
  kFree,   // the same device, or one memory without a route (or with an empty one): no step, no time
  kRoute,  // a transfer step over the cluster's route
  kNone,   // not at all, unless a plan brings a route of its own
};
Passage passage(const Cluster& cluster, DeviceId from, DeviceId to);
// The cluster's time for it; 0 when free, kImpossible when there is no way.
double transfer_us(const Cluster& cluster, DeviceId from, DeviceId to, int64_t bytes);
// Devices outside their host's memory get parameters by load steps under the cold objective.
bool needs_load(const Cluster& cluster, DeviceId device);

// Sizes agree, every op runs on at least one usable device. Planners may rely on it.
Status validate(const Problem& problem);

}  // namespace heddle
