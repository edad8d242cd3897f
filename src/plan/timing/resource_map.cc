#include "resource_map.h"

#include <algorithm>
#include <limits>
#include <map>

namespace heddle {

ResourceMap::ResourceMap(const Cluster& cluster, const ExecutionModel& execution)
    : cluster_(cluster), execution_(execution), num_devices_(cluster.num_devices()) {
  size_ = bus_base() + 2 * cluster.buses().size();
  ways_.resize(num_devices_ * num_devices_);
  load_ways_.resize(num_devices_);
  host_access_.resize(num_devices_);
  std::vector<std::pair<Way*, std::pair<size_t, size_t>>> places;
  const auto place = [&](Way& way, std::span<const Hop> hops, DeviceId from, DeviceId to) {
    const auto ids = resources_of(hops, from, to);
    places.push_back({&way, {pool_.size(), ids.size()}});
    pool_.insert(pool_.end(), ids.begin(), ids.end());
  };
  for (size_t to = 0; to < num_devices_; ++to) {
    const DeviceId t(to);
    for (size_t from = 0; from < num_devices_; ++from) {
      const DeviceId f(from);
      Way& w = ways_[from * num_devices_ + to];
      if (execution.transfers != Transfers::kRoutes) {
        const bool step = execution.transfers == Transfers::kGiven && from != to;
        w.passage = step ? Passage::kRoute : Passage::kFree;
        if (step) place(w, {}, f, t);
        continue;
      }
      w.passage = passage(cluster, f, t);
      if (w.passage != Passage::kRoute) continue;
      w.route = cluster.route(f, t);
      place(w, w.route->hops, f, t);
      w.take_rates(sharing(w.route->hops, f));
    }
    Way& w = load_ways_[to];
    w.route = cluster.load_route(t);
    if (!needs_load(cluster, t)) {
      w.passage = Passage::kFree;
    } else if (w.route != nullptr) {
      w.passage = Passage::kRoute;
      place(w, w.route->hops, DeviceId(), t);
      w.take_rates();
      if (!execution_.fixed_sharing) add_links(w.route->hops, host_access_[to]);
    }
  }
  for (auto& [way, range] : places) {
    way->resources = std::span<const uint32_t>(pool_).subspan(range.first, range.second);
  }
}

void ResourceMap::add_engine(DeviceId device, bool in, std::vector<uint32_t>& out) const {
  const int engines = cluster_.device(device).copy_engines;
  if (!execution_.engine_contention || engines <= 0) return;
  const uint32_t base = engine_base() + 2 * static_cast<uint32_t>(device.value);
  out.push_back(engines == 1 ? base : base + (in ? 1 : 0));
}

// Ascending and distinct, after what is there already.
void ResourceMap::add_links(std::span<const Hop> hops, std::vector<uint32_t>& out) const {
  if (!execution_.link_contention) return;
  for (const Hop& hop : hops) {
    const Link& link = cluster_.link(hop.link);
    const uint32_t back = link.duplex == Duplex::kFull && !hop.forward ? 1 : 0;
    out.push_back(link_base() + 2 * static_cast<uint32_t>(hop.link.value) + back);
    if (!link.bus.valid()) continue;
    const uint32_t bus_back = cluster_.bus(link.bus).duplex == Duplex::kFull && !hop.forward ? 1 : 0;
    out.push_back(bus_base() + 2 * static_cast<uint32_t>(link.bus.value) + bus_back);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

std::vector<uint32_t> ResourceMap::resources_of(std::span<const Hop> hops, DeviceId from, DeviceId to) const {
  std::vector<uint32_t> ids;
  if (from.valid()) add_engine(from, /*in=*/false, ids);
  add_engine(to, /*in=*/true, ids);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!execution_.fixed_sharing || !from.valid()) add_links(hops, ids);
  return ids;
}

std::string ResourceMap::name(uint32_t r) const {
  if (r < engine_base()) return "device " + cluster_.devices()[r].name;
  if (r < link_base()) {
    const Device& device = cluster_.devices()[(r - engine_base()) / 2];
    if (device.copy_engines == 1) return "engine " + device.name;
    return "engine " + device.name + ((r - engine_base()) % 2 ? " in" : " out");
  }
  const auto arrow = [](Duplex duplex, uint32_t direction) {
    return std::string(duplex == Duplex::kHalf ? "" : direction ? " <" : " >");
  };
  if (r < bus_base()) {
    const Link& link = cluster_.links()[(r - link_base()) / 2];
    return "link " + link.name + arrow(link.duplex, (r - link_base()) % 2);
  }
  const Bus& bus = cluster_.buses()[(r - bus_base()) / 2];
  return "bus " + bus.name +
         arrow(bus.duplex == Duplex::kFull ? Duplex::kFull : Duplex::kHalf, (r - bus_base()) % 2);
}

Result<Route> make_route(const Cluster& cluster, std::span<const Hop> hops, NodeId from, NodeId to) {
  const auto fail = [](std::string why) { return Error(Code::kInvalidInput, "route: " + std::move(why)); };
  Route route;
  route.bytes_per_s = std::numeric_limits<double>::infinity();
  std::vector<NodeId> seen{from};
  NodeId at = from;
  for (const Hop& hop : hops) {
    if (!hop.link.valid() || hop.link.index() >= cluster.links().size())
      return fail("a hop names no link of the cluster");
    const Link& link = cluster.link(hop.link);
    if (link.duplex == Duplex::kOneWay && !hop.forward)
      return fail("link '" + link.name + "' goes one way only");
    if ((hop.forward ? link.a : link.b) != at)
      return fail("link '" + link.name + "' does not start where the last one ended");
    at = hop.forward ? link.b : link.a;
    if (std::find(seen.begin(), seen.end(), at) != seen.end())
      return fail("it visits '" + cluster.node(at).name + "' twice");
    seen.push_back(at);
    route.bytes_per_s = std::min(route.bytes_per_s, link.bytes_per_s);
    if (link.bus.valid() && cluster.bus(link.bus).bytes_per_s > 0) {
      route.bytes_per_s = std::min(route.bytes_per_s, cluster.bus(link.bus).bytes_per_s);
    }
    route.latency_us += link.latency_us;
  }
  if (at != to)
    return fail("it ends at '" + cluster.node(at).name + "', expected '" + cluster.node(to).name + "'");
  route.hops.assign(hops.begin(), hops.end());
  return route;
}

std::vector<CoreGroup> core_groups(const Cluster& cluster) {
  // (host, core) -> devices; then cores with the same devices are one group.
  std::map<std::pair<int, int>, std::vector<DeviceId>> users;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const Device& device = cluster.devices()[d];
    for (const int core : device.cores) {
      auto& list = users[{device.host.value, core}];
      if (list.empty() || list.back() != DeviceId(d)) list.emplace_back(d);
    }
  }
  std::map<std::pair<int, std::vector<DeviceId>>, std::vector<int>> cores;
  for (const auto& [key, devices] : users) {
    if (devices.size() > 1) cores[{key.first, devices}].push_back(key.second);
  }
  std::vector<CoreGroup> groups;
  for (const auto& [key, list] : cores) {
    std::string text;
    for (size_t i = 0; i < list.size();) {
      size_t j = i;
      while (j + 1 < list.size() && list[j + 1] == list[j] + 1) ++j;
      text +=
          (text.empty() ? "" : ",") + std::to_string(list[i]) + (j > i ? "-" + std::to_string(list[j]) : "");
      i = j + 1;
    }
    groups.push_back({"cores " + cluster.host(HostId(key.first)).name + " " + text, key.second});
  }
  return groups;
}

}  // namespace heddle
