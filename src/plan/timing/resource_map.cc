#include "heddle/plan/resource_map.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace heddle {

ResourceMap::ResourceMap(const Cluster& cluster, const ExecutionModel& execution)
    : cluster_(cluster), execution_(execution), num_devices_(cluster.num_devices()) {
  size_ = bus_base() + 2 * cluster.buses().size();
  transfers_.resize(num_devices_ * num_devices_);
  transfer_resources_.resize(transfers_.size());
  loads_.resize(num_devices_);
  load_resources_.resize(num_devices_);
  host_access_.resize(num_devices_);
  const auto set_route = [&](RoutedTransfer& transfer, const Route& route, double sharing) {
    if (route.hops.empty()) return;
    transfer.latency_us = route.latency_us;
    transfer.bytes_per_s = route.bytes_per_s / sharing;
  };
  for (size_t at = 0; at < transfers_.size(); ++at) {
    const DeviceId from(at / num_devices_), to(at % num_devices_);
    RoutedTransfer& transfer = transfers_[at];
    const bool given = execution.transfers == Transfers::kGiven && from != to;
    transfer.passage = given                                       ? Passage::kRoute
                       : execution.transfers == Transfers::kRoutes ? passage(cluster, from, to)
                                                                   : Passage::kFree;
    if (transfer.passage != Passage::kRoute) continue;
    const Route* route = given ? nullptr : cluster.route(from, to);
    if (route != nullptr)
      set_route(transfer, *route, execution.fixed_sharing ? sharing_factor(cluster, route->hops) : 1);
    transfer_resources_[at] = resources_of(route == nullptr ? std::span<const Hop>() : route->hops, from, to);
    transfer.resources = transfer_resources_[at];
  }
  for (size_t to = 0; to < num_devices_; ++to) {
    const Route* route = cluster.load_route(DeviceId(to));
    const bool needed = needs_load(cluster, DeviceId(to));
    if (!needed) loads_[to].passage = Passage::kFree;
    if (!needed || route == nullptr) continue;
    loads_[to].passage = Passage::kRoute;
    set_route(loads_[to], *route, 1);
    load_resources_[to] = resources_of(route->hops, DeviceId(), DeviceId(to));
    loads_[to].resources = load_resources_[to];
    if (!execution.fixed_sharing) host_access_[to] = link_resources(route->hops);
  }
}

void ResourceMap::add_engine(DeviceId device, bool in, std::vector<uint32_t>& out) const {
  const int engines = cluster_.device(device).copy_engines;
  if (!execution_.engine_contention || engines <= 0) return;
  const uint32_t base = engine_base() + 2 * static_cast<uint32_t>(device.value);
  out.push_back(engines == 1 ? base : base + (in ? 1 : 0));
}

std::vector<uint32_t> ResourceMap::link_resources(std::span<const Hop> hops) const {
  if (!execution_.link_contention) return {};
  std::set<uint32_t> ids;
  for (const Hop& hop : hops) {
    const Link& link = cluster_.link(hop.link);
    const uint32_t back = link.duplex == Duplex::kFull && !hop.forward ? 1 : 0;
    ids.insert(link_base() + 2 * static_cast<uint32_t>(hop.link.value) + back);
    if (!link.bus.valid()) continue;
    const uint32_t bus_back = cluster_.bus(link.bus).duplex == Duplex::kFull && !hop.forward ? 1 : 0;
    ids.insert(bus_base() + 2 * static_cast<uint32_t>(link.bus.value) + bus_back);
  }
  return {ids.begin(), ids.end()};
}

std::vector<uint32_t> ResourceMap::resources_of(std::span<const Hop> hops, DeviceId from, DeviceId to) const {
  std::vector<uint32_t> ids;
  if (from.valid()) add_engine(from, /*in=*/false, ids);
  add_engine(to, /*in=*/true, ids);
  std::sort(ids.begin(), ids.end());
  if (execution_.fixed_sharing && from.valid()) return ids;
  const auto links = link_resources(hops);  // their numbers are above the engines'
  ids.insert(ids.end(), links.begin(), links.end());
  return ids;
}

Result<RoutedTransfer> ResourceMap::over(std::span<const Hop> hops, DeviceId from, DeviceId to,
                                         std::vector<uint32_t>& resources) const {
  const auto fail = [](std::string why) { return invalid_input("route: " + std::move(why)); };
  const NodeId start =
      from.valid() ? cluster_.device_node(from) : cluster_.host_node(cluster_.device(to).host);
  const NodeId end = cluster_.device_node(to);
  RoutedTransfer transfer{.passage = Passage::kRoute, .resources = {}};
  double rate = std::numeric_limits<double>::infinity();
  std::vector<NodeId> seen{start};
  NodeId at = start;
  for (const Hop& hop : hops) {
    if (!hop.link.valid() || hop.link.index() >= cluster_.links().size())
      return fail("a hop names no link of the cluster");
    const Link& link = cluster_.link(hop.link);
    if (link.duplex == Duplex::kOneWay && !hop.forward)
      return fail("link '" + link.name + "' goes one way only");
    if ((hop.forward ? link.a : link.b) != at)
      return fail("link '" + link.name + "' does not start where the last one ended");
    at = hop.forward ? link.b : link.a;
    if (std::find(seen.begin(), seen.end(), at) != seen.end())
      return fail("it visits '" + cluster_.node(at).name + "' twice");
    seen.push_back(at);
    rate = std::min(rate, link_bytes_per_s(cluster_, link));
    transfer.latency_us += link.latency_us;
  }
  if (at != end)
    return fail("it ends at '" + cluster_.node(at).name + "', expected '" + cluster_.node(end).name + "'");
  resources = resources_of(hops, from, to);
  transfer.resources = resources;
  const bool shares = execution_.fixed_sharing && from.valid();
  if (!hops.empty()) transfer.bytes_per_s = rate / (shares ? sharing_factor(cluster_, hops) : 1);
  return transfer;
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

double link_bytes_per_s(const Cluster& cluster, const Link& link) {
  const double bus = link.bus.valid() ? cluster.bus(link.bus).bytes_per_s : 0;
  return bus > 0 ? std::min(link.bytes_per_s, bus) : link.bytes_per_s;
}

std::vector<CoreGroup> core_groups(const Cluster& cluster) {
  // First (host, core) -> devices; then cores with the same devices form one group.
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

std::vector<std::vector<uint32_t>> core_groups_among(const Cluster& cluster,
                                                     std::span<const DeviceId> devices) {
  std::set<std::vector<uint32_t>> groups;
  for (const CoreGroup& group : core_groups(cluster)) {
    std::vector<uint32_t> among;
    for (uint32_t i = 0; i < devices.size(); ++i) {
      if (std::binary_search(group.devices.begin(), group.devices.end(), devices[i])) among.push_back(i);
    }
    if (among.size() > 1) groups.insert(std::move(among));
  }
  return {groups.begin(), groups.end()};
}

}  // namespace heddle
