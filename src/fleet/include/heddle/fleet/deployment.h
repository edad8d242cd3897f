// A fleet plan laid out on devices and servers, in the form that the data plane decides on: pools of virtual
// devices with the time of each batch size, the links that their servers share, and the models' deadlines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

// What a device holds: it needs no new load where another plan gives it the same.
struct PoolRole {
  std::string model;
  int block_from = 0, block_to = 0;
  std::string device_class;
  int share = 1;
  bool operator==(const PoolRole&) const = default;
  auto operator<=>(const PoolRole&) const = default;
};

// A partition's virtual devices are first_device .. first_device + num_devices - 1. Whole models may share a
// pool: pipelines of one partition, of different models, that name the same devices take turns on them.
struct DevicePool {
  uint32_t first_device = 0, num_devices = 0;
  std::vector<TimeNs> run_ns;       // [batch - 1] of a whole batch, for 1 .. the pipeline's batch
  std::vector<TimeNs> transfer_ns;  // [batch - 1] of bringing it here; empty at the first partition
  PoolRole role;
  // [batch - 1] what a timed device takes, where that is not what the plan believes; empty: run_ns.
  std::vector<TimeNs> timed_ns;
};

struct DeployedPipeline {
  uint32_t model = 0;
  uint32_t batch = 1;     // that was planned: never exceeded
  double rate_per_s = 0;  // that its pools sustain
  std::vector<DevicePool> partitions;
};

struct DeployedModel {
  std::string name;
  TimeNs slo_ns = 0;                // from arrival to answer; no margin is taken off
  double rate_per_s = 0;            // arrivals at load factor 1
  std::vector<uint32_t> pipelines;  // indices into Deployment::pipelines
};

struct VirtualDevice {
  uint32_t device_class = 0;
  uint32_t device = 0;  // the whole device that it is a share of: 0 .. of all classes
  uint32_t server = 0;  // whose uplink and downlink it shares: 0 .. num_servers - 1
  uint32_t share = 1;   // 1/share of the device
};

struct DeployedClass {
  std::string name;
  int64_t devices = 0;        // whole devices in the fleet, used or not
  uint32_t first_device = 0;  // those used are numbered from here
  uint32_t used = 0;
};

struct Deployment {
  std::vector<DeployedModel> models;
  std::vector<DeployedPipeline> pipelines;
  std::vector<VirtualDevice> devices;
  std::vector<DeployedClass> classes;
  uint32_t num_servers = 0;
};

// Is it one that the data plane can run? Every index in range, each virtual device in exactly one pool (or in
// one that models share), times positive and at most an hour, one time for each batch size. The error names
// model, pipeline and partition.
Status check_deployment(const Deployment& deployment);

// Lays the plan out. Virtual devices of one model, partition position and class fill whole devices (those of
// other models or positions get others); consecutive devices of a class form servers. Times are the fleet's
// block times, summed over the partition's blocks; a transfer occupies both servers' links for bytes over the
// slower of the two. Load factor 1 of a model is its plan's rate. Errors: a time that the fleet lacks, more
// devices than the class has. O(virtual devices + pipelines * batch * blocks).
Result<Deployment> deploy(const Fleet& fleet, const FleetPlan& plan);

}  // namespace heddle
