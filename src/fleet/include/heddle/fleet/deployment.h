// A fleet plan laid out on devices and servers, as the data plane needs it. It has pools of virtual devices with a
// time for each batch size, the links that the devices of a server share, and the models' deadlines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

// What a device holds. A device that has the same role in the next plan needs no new load.
struct PoolRole {
  std::string model;
  int block_from = 0, block_to = 0;
  std::string device_class;
  int share = 1;
  bool operator==(const PoolRole&) const = default;
  auto operator<=>(const PoolRole&) const = default;
};

// A partition's virtual devices are first_device .. first_device + num_devices - 1. Pipelines of different
// models may name the same devices if each consists of one partition; the models then take turns on the pool.
struct DevicePool {
  uint32_t first_device = 0, num_devices = 0;
  std::vector<TimeNs> run_ns;       // [batch - 1] time of a whole batch, for 1 .. the pipeline's batch
  std::vector<TimeNs> transfer_ns;  // [batch - 1] time to bring it here; empty at the first partition
  PoolRole role;
  // [batch - 1] time that an emulated device really takes, if it differs from the plan's; empty: run_ns.
  std::vector<TimeNs> timed_ns;
};

struct DeployedPipeline {
  uint32_t model = 0;
  uint32_t batch = 1;     // the planned batch size; never exceeded
  double rate_per_s = 0;  // the rate that its pools sustain
  std::vector<DevicePool> partitions;
};

struct DeployedModel {
  std::string name;
  TimeNs slo_ns = 0;                // from arrival to answer; the plan's margin is not subtracted
  double rate_per_s = 0;            // arrivals at load factor 1
  std::vector<uint32_t> pipelines;  // indices into Deployment::pipelines
};

struct VirtualDevice {
  uint32_t device_class = 0;
  uint32_t device = 0;  // the whole device of which it is a share; numbered over all classes
  uint32_t server = 0;  // the server whose uplink and downlink it shares: 0 .. num_servers - 1
  uint32_t share = 1;   // 1/share of the device
};

struct DeployedClass {
  std::string name;
  int64_t devices = 0;        // whole devices in the fleet, used or not
  uint32_t first_device = 0;  // the used devices have numbers from here on
  uint32_t used = 0;
  uint32_t per_server = 1;  // devices in one server
};

struct Deployment {
  std::vector<DeployedModel> models;
  std::vector<DeployedPipeline> pipelines;
  std::vector<VirtualDevice> devices;
  std::vector<DeployedClass> classes;
  uint32_t num_servers = 0;
};

// Checks that the data plane can run the deployment: every index in range, each virtual device in exactly one
// pool (or in one that models share), times positive and at most an hour, one time for each batch size. The
// error names model, pipeline and partition.
Status check_deployment(const Deployment& deployment);

enum class ServerOrder {
  kSpread,  // pools that send much and pools that receive much share servers, so that links are evenly busy
  kConsecutive,  // devices in the order of their numbers; a pool's devices share few servers
};

// Puts the devices of each class on its servers. Every other index is as in check_deployment(). O(n log n + pools x
// servers), n the virtual devices.
void put_on_servers(Deployment& deployment, ServerOrder order);

// Lays out the plan. Whole devices are filled by virtual devices of one class, model and partition position, and
// spread over the class's servers. Run times are the fleet's block times, summed over the
// partition's blocks. A transfer occupies both servers' links for bytes / bandwidth of the slower one. A
// model's load factor 1 is its planned rate. Errors: a time is missing in the fleet, or the plan needs more
// devices than a class has. O(virtual devices + pipelines * batch * blocks).
Result<Deployment> deploy(const Fleet& fleet, const FleetPlan& plan);

}  // namespace heddle
