// The planning problem: graph, cluster, costs, objective and execution model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
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

// How a tensor gets from the device that makes it to those that read it.
enum class Transfers : uint8_t {
  kRoutes,      // by a transfer step over links and buses, timed by the tensor's bytes
  kGiven,       // by a transfer step that takes the time in Problem::transfers and holds copy engines only
  kWithinRuns,  // through host memory, by the devices themselves: a run moves its inputs in and its outputs out
};
const char* transfers_name(Transfers transfers);  // "routes", "given", "within-runs"
std::optional<Transfers> transfers_from_name(std::string_view name);

// The resources that a transfer occupies for its whole duration, and how many segments a device runs at once.
// Devices that share cores never run at the same time.
struct ExecutionModel {
  bool link_contention = true;    // each link (direction) and bus on the route
  bool engine_contention = true;  // a copy engine at the source device and one at the destination device
  int stage_width = 1;            // largest number of segments in a stage; 1: no stages
  // Replaces waiting for shared links by fixed factors (SortingHat, section 3.4; latencies only). Transfers
  // and direct host access then hold no link or bus and take longer by sharing_factor(); loads still hold
  // them.
  bool fixed_sharing = false;
  bool parameter_drops = false;  // cold: may plans drop parameters after their last use?
  Transfers transfers = Transfers::kRoutes;
  // CPU devices run any number of segments at once. Latency and Transfers::kWithinRuns only.
  bool unlimited_cpus = false;
};

// Times of transfers that come with the problem instead of from bytes and routes.
//
// Transfers::kGiven: a time for each tensor and ordered pair of devices, 0 from a device to itself. A tensor
// has at most one reader, so that every edge of the graph is a transfer of its own (Moirai's flows).
//
// Transfers::kWithinRuns: a time for each tensor, between a device with memory of its own and host memory, in
// either direction (Tarnawski et al., NeurIPS 2020). Such a device moves in every tensor that it reads and has
// not made, computes, and moves out every tensor that others read; all of it is the run. CPU devices compute
// in host memory and move nothing. Latency: each segment moves its own tensors, once each. Throughput: each
// device moves a tensor once, with the first of its segments that reads it.
struct TransferTimes {
  std::vector<double> us;  // kWithinRuns: per tensor; kGiven: matrices [from * devices + to] in a row
  // kGiven, per tensor: its matrix; -1: an order without data, which takes no step and no time. Else empty.
  std::vector<int32_t> matrix;
};

// Rules for placements, beside the devices' memory.
struct PlacementRules {
  std::vector<int32_t> colour;    // per op: ops of one colour >= 0 share a device; empty: all are free
  std::vector<uint8_t> backward;  // per op: 1: it belongs to the backward pass of training; empty: none does
  // The devices can be ordered so that every edge between forward ops leads to the same or a later device. An
  // edge between backward ops counts, turned round, where an end has no forward op of its colour.
  bool contiguous = false;
  int most_segments = 0;  // on each device with memory of its own; 0: any number
};

struct ImportOptions;

// The model file behind a problem, needed to run a plan.
struct ModelReference {
  std::string path;
  uint64_t file_hash = 0;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::optional<int64_t> batch;
  int64_t split_bytes = 0;                                 // ImportOptions::split_bytes
  std::map<std::string, std::vector<double>> values = {};  // ImportOptions::values
};
// The import options that reproduce the problem's graph.
ImportOptions import_options(const ModelReference& reference);

// How the types of a plan's segments were chosen so that its outputs keep to a budget (session/precision.h). All
// errors are against float32, on the same samples.
struct PrecisionChoice {
  double least_agreement = 1;  // the budget: share of equal decisions, and mean error as a part of the range
  double most_mean = 0;
  int samples = 0;
  // A unit in a narrower type inside the model in float32: what that changes in the outputs. Empty if the whole model
  // in its narrowest types keeps to the budget, so that no unit was measured.
  struct Unit {
    OpId op;
    Precision type = Precision::kF32;
    double agreement = 1, mean = 0;
    bool allowed = true;
  };
  std::vector<Unit> units;
  // Of the plan, measured; before that of its units' allowed types.
  double agreement = 1, mean = 0, largest = 0;

  bool holds() const { return agreement >= least_agreement && mean <= most_mean; }
  bool forbids(OpId op, Precision type) const;
};

// Members are shared and immutable, so copying a Problem is cheap. `graph`, `cluster` and `costs` are never
// null in a validated problem.
struct Problem {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const CostTable> costs;
  Objective objective = Objective::kLatency;
  ExecutionModel execution;
  int batch = 1;
  std::vector<DeviceId> devices;  // devices that a plan may use, ascending; empty: all
  std::optional<ModelReference> model;
  // Cold: per memory pool outside host memory, the parameters that are there from the start, ascending;
  // empty: none anywhere. Resident parameters that a plan does not use there free their memory.
  std::vector<std::vector<ParamId>> resident;
  std::shared_ptr<const TransferTimes> transfers;    // null exactly where execution.transfers is kRoutes
  std::shared_ptr<const PlacementRules> rules;       // null: none
  std::shared_ptr<const PrecisionChoice> precision;  // null: no budget. Its costs are without forbidden types

  bool may_use(DeviceId device) const;
  std::vector<DeviceId> usable_devices() const;
  // Per node of the cluster, 1 if it is the node of unusable devices only. A plan's own load route may not
  // pass such a node: an unused device provides no memory for data in transit.
  std::vector<uint8_t> closed_nodes() const;
  bool is_resident(int pool, ParamId param) const;
  // True when the objective is cold latency and some op has a time with direct host access.
  bool has_host_access() const;
  // Transfers::kGiven: the time of a transfer step, and whether the tensor needs none between any devices.
  double given_transfer_us(TensorId tensor, DeviceId from, DeviceId to) const {
    const size_t k = cluster->num_devices();
    const auto matrix = static_cast<size_t>(transfers->matrix[tensor.index()]);
    return transfers->us[(matrix * k + from.index()) * k + to.index()];
  }
  bool is_order_only(TensorId tensor) const { return transfers->matrix[tensor.index()] < 0; }
  // Transfers::kWithinRuns: does the device move what it reads and makes?
  bool moves_tensors(DeviceId device) const { return cluster->device(device).kind != DeviceKind::kCpu; }
};

// How a tensor gets from one device to another.
enum class Passage : uint8_t {
  kFree,   // same device, or same memory without a route (or an empty one): no step, no time
  kRoute,  // a transfer step over the cluster's route
  kNone,   // impossible, unless the plan has a route of its own
};
Passage passage(const Cluster& cluster, DeviceId from, DeviceId to);
// The time over the cluster's route; 0 for kFree, kImpossible for kNone.
double transfer_us(const Cluster& cluster, DeviceId from, DeviceId to, int64_t bytes);
// True for devices outside their host's memory: under the cold objective load steps bring their parameters.
bool needs_load(const Cluster& cluster, DeviceId device);

// Worst-case sharing (SortingHat, section 3.4): the factor on a transfer's time per byte over these hops. 1.5
// for one direct link that is on no bus, else the number of the cluster's devices outside host memory.
double sharing_factor(const Cluster& cluster, std::span<const Hop> hops);
// The factor for direct host access: 2 x the number of devices (this one included) whose load routes share a
// link or a bus with this device's.
double host_sharing_factor(const Cluster& cluster, DeviceId device);
// The op's time on the device with direct host access under the problem's execution model. An op without
// parameters takes its usual time. kImpossible when there is no such time, the device is in host memory, or
// it has no route.
double host_access_us(const Problem& problem, OpId op, DeviceId device);

// Sizes agree and every op runs on at least one usable device. Planners may rely on both.
Status validate(const Problem& problem);

}  // namespace heddle
