// The hardware: hosts, devices, links, buses and the routes between them. Immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"

namespace heddle {

enum class DeviceKind { kCpu, kGpu, kNpu, kFpga };
const char* device_kind_name(DeviceKind kind);

// The type in which a device computes the float32 parts of a model.
enum class Precision { kF32, kTf32, kBf16, kFp16 };
const char* precision_name(Precision precision);  // "f32", "tf32", "bf16", "fp16"
std::optional<Precision> precision_from_name(std::string_view name);

struct Host {
  std::string name;
  int64_t memory_bytes = 0;  // host memory; 0: unlimited
};

struct Device {
  std::string name;  // unique in the cluster
  DeviceKind kind = DeviceKind::kGpu;
  std::string device_class;  // devices of one class have the same cost: "V100", "cpu2"
  HostId host;
  int64_t memory_bytes = 0;       // 0: unlimited. CPU devices use their host's memory
  double peak_flops = 0;          // float32, per second
  double memory_bytes_per_s = 0;  // device memory bandwidth
  double op_overhead_us = 0;      // fixed cost of starting one segment
  double speed = 1;               // multiplies all rates: 0.5 for a device slowed to half
  std::vector<int> cores;         // CPU: the host's core numbers; devices may overlap
  // Engines that copy data to and from the device. 0: unlimited, 1: one for both directions, 2: one per
  // direction.
  int copy_engines = 2;
  std::string backend = "emulated";  // the engine: "openvino", "onnxruntime", "torch" or "emulated"
  std::string backend_device;        // OpenVINO's name: "CPU", "GPU.0"; libtorch's: "cpu"
  Precision precision = Precision::kF32;
  bool fixed_precision = false;  // the cluster file states it, so the engine does not choose
  std::string target;            // identifies profiles besides the class; empty for absent devices
  // Not empty: this device is the same hardware as the device of that name, with another engine or precision.
  std::string variant_of;
};

// A vertex of the topology.
struct Node {
  enum class Kind { kHostMemory, kDevice, kSwitch };
  Kind kind = Kind::kSwitch;
  std::string name;  // name of the host, device or switch (PCIe switch, NIC, network)
  HostId host;       // of host memory
  DeviceId device;   // of a device
};

enum class Duplex {
  kFull,    // both directions at once, each with the whole bandwidth
  kHalf,    // one transfer at a time, in either direction
  kOneWay,  // from a to b only (a one-way NVLink)
};

struct Link {
  std::string name;
  NodeId a, b;
  double bytes_per_s = 0;
  double latency_us = 0;
  Duplex duplex = Duplex::kFull;
  BusId bus;  // invalid if the link is on no bus
};

// Links on one bus cannot carry data at the same time (a shared PCIe root port).
struct Bus {
  std::string name;
  double bytes_per_s = 0;         // 0: limited only by its links
  Duplex duplex = Duplex::kHalf;  // kFull: each direction is a separate resource
};

struct Hop {
  LinkId link;
  bool forward = true;  // from the link's a to its b
};

// A path of links. Bandwidth is the minimum over links and buses, latency the sum. An empty route (same
// device, or devices in one memory) costs nothing.
struct Route {
  std::vector<Hop> hops;
  double bytes_per_s = 0;  // infinity for an empty route
  double latency_us = 0;
  double time_us(int64_t bytes) const {
    return hops.empty() ? 0 : latency_us + static_cast<double>(bytes) / bytes_per_s * 1e6;
  }
};

class Cluster {
 public:
  const std::string& name() const { return name_; }
  std::span<const Host> hosts() const { return hosts_; }
  std::span<const Device> devices() const { return devices_; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Link> links() const { return links_; }
  std::span<const Bus> buses() const { return buses_; }
  size_t num_devices() const { return devices_.size(); }

  const Host& host(HostId id) const { return hosts_[id.index()]; }
  const Device& device(DeviceId id) const { return devices_[id.index()]; }
  const Link& link(LinkId id) const { return links_[id.index()]; }
  const Bus& bus(BusId id) const { return buses_[id.index()]; }
  const Node& node(NodeId id) const { return nodes_[id.index()]; }

  // A CPU device without links has its host's node: a route to that memory reaches the device.
  NodeId device_node(DeviceId id) const { return device_nodes_[id.index()]; }
  NodeId host_node(HostId id) const { return host_nodes_[id.index()]; }
  // By name, or by that of its hardware if no other device is the same hardware ("cpu0" for "cpu0+bf16"). Invalid when
  // there is none. O(devices).
  DeviceId find_device(std::string_view name) const;

  // Fastest routes for a 1 MiB message (ties: fewer hops, then smaller link ids); nullptr when there is none.
  // A route passes through a device only if no other route exists, because devices do not forward for others.
  // Computed once at build: O(nodes * links log). `route(d, d)` is empty.
  const Route* route(DeviceId from, DeviceId to) const;
  // From the device's host memory; empty for a CPU device, which computes in that memory.
  const Route* load_route(DeviceId to) const;
  const Route* route(NodeId from, NodeId to) const;

  // The device itself, or the one of which it is a variant. Variants share its cores, memory, links and node, so
  // a tensor passes between them without a transfer.
  DeviceId physical(DeviceId id) const { return physical_[id.index()]; }
  bool is_variant(DeviceId id) const { return physical(id) != id; }
  // The physical device and its variants, in the cluster's order. O(devices).
  std::vector<DeviceId> variants(DeviceId id) const;
  // Devices that exclude this one because they share a core with it (never itself).
  std::span<const DeviceId> overlaps(DeviceId id) const { return overlaps_[id.index()]; }
  // Devices in one memory share a pool: all CPU devices of a host; every other device has its own.
  int memory_pool(DeviceId id) const { return memory_pool_[id.index()]; }
  int num_memory_pools() const { return static_cast<int>(pool_bytes_.size()); }
  int64_t memory_pool_bytes(int pool) const {
    return pool_bytes_[static_cast<size_t>(pool)];
  }  // 0: unlimited

 private:
  friend class ClusterBuilder;
  std::string name_;
  std::vector<Host> hosts_;
  std::vector<Device> devices_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Bus> buses_;
  std::vector<NodeId> device_nodes_, host_nodes_;
  std::vector<DeviceId> physical_;
  std::vector<std::vector<DeviceId>> overlaps_;
  std::vector<int> memory_pool_;
  std::vector<int64_t> pool_bytes_;
  std::vector<std::optional<Route>> routes_;  // nodes x nodes
};

// Invalid input, with the nearest name and all names, if there is no device of that name.
Result<DeviceId> device_named(const Cluster& cluster, const std::string& name);

class ClusterBuilder {
 public:
  explicit ClusterBuilder(std::string name) { cluster_.name_ = std::move(name); }
  HostId add_host(Host host);
  DeviceId add_device(Device device);
  NodeId add_switch(std::string name);
  // [node of `from`] its node here, once the hosts and devices of `from` are added with the same ids. Adds the
  // switches.
  std::vector<NodeId> add_nodes_of(const Cluster& from);
  BusId add_bus(Bus bus);
  LinkId add_link(Link link);
  NodeId device_node(DeviceId id) const { return cluster_.device_nodes_[id.index()]; }
  NodeId host_node(HostId id) const { return cluster_.host_nodes_[id.index()]; }
  // Validates (unique names, ids in range, positive finite rates, cores only on CPUs, variants of CPUs with
  // cores) and computes the routes.
  Result<std::shared_ptr<const Cluster>> build();

 private:
  Cluster cluster_;
};

}  // namespace heddle
