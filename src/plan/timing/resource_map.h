// Which exclusive resources a run, a transfer or a load occupies. Shared by evaluator, builder and bounds;
// the checker has its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// One way for data: its route and the resources that it holds for its whole duration.
struct Way {
  Passage passage = Passage::kNone;
  const Route* route = nullptr;  // null: free, none, or a time that is given
  std::span<const uint32_t> resources;
  double latency_us = 0, bytes_per_s = 1;  // the route's
  // Route::time_us, to the last bit, without a look at the route.
  double time_us(int64_t bytes) const { return latency_us + static_cast<double>(bytes) / bytes_per_s * 1e6; }
  // The route's rates; `sharing` is the factor on the time per byte.
  void take_rates(double sharing = 1) {
    if (route == nullptr || route->hops.empty()) return;
    latency_us = route->latency_us;
    bytes_per_s = route->bytes_per_s / sharing;
  }
};

// Resources are numbered: devices, copy engines (out, in per device), link directions, bus directions.
class ResourceMap {
 public:
  ResourceMap(const Cluster& cluster, const ExecutionModel& execution);
  // `way(...)` hands out spans into this object.
  ResourceMap(const ResourceMap&) = delete;
  ResourceMap& operator=(const ResourceMap&) = delete;

  size_t size() const { return size_; }
  const Way& way(DeviceId from, DeviceId to) const { return ways_[from.index() * num_devices_ + to.index()]; }
  const Way& load_way(DeviceId to) const { return load_ways_[to.index()]; }
  // What a run with direct host access holds beside its device: the load route's links and buses.
  std::span<const uint32_t> host_access_resources(DeviceId device) const {
    return host_access_[device.index()];
  }
  // The factor on the time per byte of a transfer (`from` valid) or load over these hops.
  double sharing(std::span<const Hop> hops, DeviceId from) const {
    return execution_.fixed_sharing && from.valid() ? sharing_factor(cluster_, hops) : 1;
  }
  // Resources of explicit hops between devices (`from` invalid: from host memory), ascending and distinct.
  std::vector<uint32_t> resources_of(std::span<const Hop> hops, DeviceId from, DeviceId to) const;
  // "device gpu0", "link pcie0 >", "link pcie0" (half duplex), "bus root0", "engine gpu0 out".
  std::string name(uint32_t resource) const;

 private:
  uint32_t engine_base() const { return static_cast<uint32_t>(num_devices_); }
  uint32_t link_base() const { return engine_base() + 2 * static_cast<uint32_t>(num_devices_); }
  uint32_t bus_base() const { return link_base() + 2 * static_cast<uint32_t>(cluster_.links().size()); }
  void add_links(std::span<const Hop> hops, std::vector<uint32_t>& out) const;
  void add_engine(DeviceId device, bool in, std::vector<uint32_t>& out) const;

  const Cluster& cluster_;
  ExecutionModel execution_;
  size_t num_devices_;
  size_t size_;
  std::vector<Way> ways_, load_ways_;
  std::vector<uint32_t> pool_;
  std::vector<std::vector<uint32_t>> host_access_;  // per device
};

// A route of explicit hops: latency is the sum, bandwidth the least (buses included). Fails when the hops do
// not lead from `from` to `to`, go against a one-way link, visit a node twice or name unknown links.
Result<Route> make_route(const Cluster& cluster, std::span<const Hop> hops, NodeId from, NodeId to);

// Sets of devices that share a core, each with the cores' names ("cores host0 0-1"); only sets of two or
// more.
struct CoreGroup {
  std::string name;
  std::vector<DeviceId> devices;  // ascending
};
std::vector<CoreGroup> core_groups(const Cluster& cluster);

}  // namespace heddle
