#include "resource_names.h"

#include <algorithm>

namespace heddle {

ResourceNumbers::ResourceNumbers(const Problem& problem, const Seats& seats)
    : cluster_(*problem.cluster), execution_(problem.execution) {
  const auto devices = static_cast<int32_t>(cluster_.num_devices());
  for (const int32_t places : seats.widest) {
    places_.emplace_back(engines_, places);
    engines_ += places;
  }
  links_ = engines_ + 2 * devices;
  buses_ = links_ + 2 * static_cast<int32_t>(cluster_.links().size());
  size_ = buses_ + 2 * static_cast<int32_t>(cluster_.buses().size());
  for (const Device& device : cluster_.devices()) {
    for (int core : device.cores) {
      if (core_.emplace(std::pair(device.host.value, core), size_).second) ++size_;
    }
  }
}

std::vector<int32_t> ResourceNumbers::of_run(const Seat& seat) const {
  std::vector<int32_t> used;
  if (seat.cores.empty()) {
    const auto [first, count] = places_[seat.device.index()];
    const int32_t begin = seat.of == 1 ? 0 : seat.index;
    const int32_t end = seat.index + 1 == seat.of ? count : seat.index + 1;
    for (int32_t i = begin; i < end; ++i) used.push_back(first + i);
    return used;
  }
  const int32_t host = cluster_.device(seat.device).host.value;
  for (int core : seat.cores) used.push_back(core_.at({host, core}));
  std::sort(used.begin(), used.end());
  return used;
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
  // Under fixed sharing, transfers take longer instead of occupying links.
  if (execution_.link_contention && !(execution_.fixed_sharing && from.valid())) {
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
