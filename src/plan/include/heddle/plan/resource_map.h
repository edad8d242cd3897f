// Which exclusive resources a run, a transfer or a load occupies. Shared by evaluator, builder, bounds and
// planners; the checker has its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// A transfer or load over a route: its time and the resources that it holds for its whole duration.
struct RoutedTransfer {
  Passage passage = Passage::kNone;
  std::span<const uint32_t> resources;     // ascending and distinct
  double latency_us = 0, bytes_per_s = 1;  // the route's, with the factor of fixed sharing
  // Equals Route::time_us() to the last bit.
  double time_us(int64_t bytes) const { return latency_us + static_cast<double>(bytes) / bytes_per_s * 1e6; }
};

// Resources are numbered: devices, copy engines (out, in per device), link directions, bus directions.
class ResourceMap {
 public:
  ResourceMap(const Cluster& cluster, const ExecutionModel& execution);
  // Not copyable: transfers have spans into this object.
  ResourceMap(const ResourceMap&) = delete;
  ResourceMap& operator=(const ResourceMap&) = delete;

  size_t size() const { return size_; }
  // Over the cluster's own routes: between devices, and from host memory.
  const RoutedTransfer& transfer(DeviceId from, DeviceId to) const {
    return transfers_[from.index() * num_devices_ + to.index()];
  }
  const RoutedTransfer& load(DeviceId to) const { return loads_[to.index()]; }
  // Over explicit hops (`from` invalid: from host memory). Its latency is their sum, its bandwidth their
  // minimum (buses included). `resources` receives the resources held and must outlive it. Fails when the hops do not
  // lead to `to`, use a one-way link backwards, visit a node twice or name unknown links.
  Result<RoutedTransfer> over(std::span<const Hop> hops, DeviceId from, DeviceId to,
                              std::vector<uint32_t>& resources) const;
  // Resources that a run with direct host access holds besides its device: links and buses of the load route.
  std::span<const uint32_t> host_access_resources(DeviceId device) const {
    return host_access_[device.index()];
  }
  // Links and buses of the hops; ascending and distinct. Empty without link contention.
  std::vector<uint32_t> link_resources(std::span<const Hop> hops) const;
  // The hop's bus or, without one, its link: the resource that links may share. Needs link contention.
  uint32_t channel(const Hop& hop) const { return link_resources({&hop, 1}).back(); }
  // "device gpu0", "link pcie0 >", "link pcie0" (half duplex), "bus root0", "engine gpu0 out".
  std::string name(uint32_t resource) const;

 private:
  uint32_t engine_base() const { return static_cast<uint32_t>(num_devices_); }
  uint32_t link_base() const { return engine_base() + 2 * static_cast<uint32_t>(num_devices_); }
  uint32_t bus_base() const { return link_base() + 2 * static_cast<uint32_t>(cluster_.links().size()); }
  std::vector<uint32_t> resources_of(std::span<const Hop> hops, DeviceId from, DeviceId to) const;
  void add_engine(DeviceId device, bool in, std::vector<uint32_t>& out) const;

  const Cluster& cluster_;
  const ExecutionModel execution_;
  const size_t num_devices_;
  size_t size_;
  std::vector<RoutedTransfer> transfers_, loads_;
  std::vector<std::vector<uint32_t>> transfer_resources_, load_resources_, host_access_;  // of the spans
};

// The link's bandwidth, limited by its bus.
double link_bytes_per_s(const Cluster& cluster, const Link& link);

// Sets of two or more devices that share cores, each named by these cores ("cores host0 0-1").
struct CoreGroup {
  std::string name;
  std::vector<DeviceId> devices;  // ascending
};
std::vector<CoreGroup> core_groups(const Cluster& cluster);
// The same among some devices, as their indices in `devices`; each set once.
std::vector<std::vector<uint32_t>> core_groups_among(const Cluster& cluster,
                                                     std::span<const DeviceId> devices);

}  // namespace heddle
