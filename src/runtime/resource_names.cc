#include "resource_names.h"

#include <algorithm>

namespace heddle {

ResourceNumbers::ResourceNumbers(const Problem& problem)
    : cluster_(*problem.cluster), execution_(problem.execution) {
  const auto devices = static_cast<int32_t>(cluster_.num_devices());
  engines_ = devices;
  links_ = engines_ + 2 * devices;
  buses_ = links_ + 2 * static_cast<int32_t>(cluster_.links().size());
  size_ = buses_ + 2 * static_cast<int32_t>(cluster_.buses().size());
  for (const Device& device : cluster_.devices()) {
    for (int core : device.cores) {
      if (core_.emplace(std::pair(device.host.value, core), size_).second) ++size_;
    }
  }
}

std::vector<int32_t> ResourceNumbers::of_run(DeviceId id) const {
  const Device& device = cluster_.device(id);
  if (device.cores.empty()) return {id.value};
  std::vector<int32_t> cores;
  for (int core : device.cores) cores.push_back(core_.at({device.host.value, core}));
  std::sort(cores.begin(), cores.end());
  return cores;
}

std::vector<int32_t> ResourceNumbers::of_way(std::span<const Hop> hops, DeviceId from, DeviceId to) const {
  std::vector<int32_t> used;
  if (hops.empty()) return used;
  const auto engine = [&](DeviceId id, bool in) {
    if (!id.valid()) return;
    const int engines = cluster_.device(id).copy_engines;
    if (engines > 0) used.push_back(engines_ + 2 * id.value + (engines > 1 && in ? 1 : 0));
  };
  if (execution_.engine_contention) {
    engine(from, false);
    engine(to, true);
  }
  if (execution_.link_contention) {
    for (const Hop& hop : hops) {
      const Link& link = cluster_.link(hop.link);
      used.push_back(links_ + 2 * hop.link.value + (link.duplex == Duplex::kFull && !hop.forward ? 1 : 0));
      if (!link.bus.valid()) continue;
      const bool both = cluster_.bus(link.bus).duplex == Duplex::kFull;
      used.push_back(buses_ + 2 * link.bus.value + (both && !hop.forward ? 1 : 0));
    }
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

}  // namespace heddle
