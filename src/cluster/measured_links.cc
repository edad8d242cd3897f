#include "heddle/cluster/measured_links.h"

#include <algorithm>
#include <string>

#include "rounded.h"

namespace heddle {
namespace {

class MeasuredEditor {
 public:
  MeasuredEditor(const Cluster& from, const MeasuredLinks& measured)
      : from_(from),
        measured_(measured),
        links_(from.links().begin(), from.links().end()),
        buses_(from.buses().begin(), from.buses().end()),
        on_bus_before_(buses_.size(), 0) {
    for (const Link& link : links_) {
      if (link.bus.valid()) ++on_bus_before_[link.bus.index()];
    }
  }

  Result<std::shared_ptr<const Cluster>> run() {
    for (const MeasuredWay& way : measured_.ways) HEDDLE_RETURN_IF_ERROR(check(way));
    for (size_t d = 0; d < from_.num_devices(); ++d) set_host_way(DeviceId(d));
    for (size_t a = 0; a < from_.num_devices(); ++a) {
      for (size_t b = a + 1; b < from_.num_devices(); ++b) set_peers(DeviceId(a), DeviceId(b));
    }
    set_buses();
    return rebuilt();
  }

 private:
  Status check(const MeasuredWay& way) const {
    if ((way.from.valid() || way.to.valid()) && way.bytes_per_s > 0 && way.latency_us >= 0) return {};
    return invalid_input("a measured way from '" + name_of(way.from) + "' to '" + name_of(way.to) +
                         "' has no rate; expected a device at one end, a bandwidth above 0 "
                         "and a latency of at least 0");
  }
  std::string name_of(DeviceId id) const { return id.valid() ? from_.device(id).name : "host"; }

  const MeasuredWay* find(DeviceId from, DeviceId to) const {
    for (const MeasuredWay& way : measured_.ways) {
      if (way.from == from && way.to == to) return &way;
    }
    return nullptr;
  }
  // The slower of both directions, rounded; nullopt if neither was measured.
  std::optional<MeasuredWay> slower(DeviceId a, DeviceId b) const {
    const MeasuredWay *there = find(a, b), *back = find(b, a);
    if (there == nullptr && back == nullptr) return std::nullopt;
    MeasuredWay way = there != nullptr ? *there : *back;
    if (there != nullptr && back != nullptr) {
      way.bytes_per_s = std::min(there->bytes_per_s, back->bytes_per_s);
      way.latency_us = std::max(there->latency_us, back->latency_us);
    }
    way.bytes_per_s = rounded(way.bytes_per_s);
    way.latency_us = rounded(way.latency_us);
    return way;
  }
  bool is_half_duplex(DeviceId device) const {
    return std::find(measured_.half_duplex.begin(), measured_.half_duplex.end(), device) !=
           measured_.half_duplex.end();
  }
  // The device's own link on its route from the host; invalid if it has none.
  LinkId host_link(DeviceId device) const {
    const Route* route = from_.load_route(device);
    return route == nullptr || route->hops.empty() ? LinkId() : route->hops.back().link;
  }
  void raise(const Hop& hop, double bytes_per_s) {
    Link& link = links_[hop.link.index()];
    link.bytes_per_s = std::max(link.bytes_per_s, bytes_per_s);
    if (link.bus.valid()) raise(buses_[link.bus.index()], bytes_per_s);
  }
  static void raise(Bus& bus, double bytes_per_s) {
    if (bus.bytes_per_s > 0) bus.bytes_per_s = std::max(bus.bytes_per_s, bytes_per_s);
  }

  void set_host_way(DeviceId device) {
    const auto way = slower(DeviceId(), device);
    if (!way) return;
    const Duplex duplex = is_half_duplex(device) ? Duplex::kHalf : Duplex::kFull;
    const LinkId at = host_link(device);
    if (!at.valid()) {
      links_.push_back({.a = from_.host_node(from_.device(device).host),
                        .b = from_.device_node(device),
                        .bytes_per_s = way->bytes_per_s,
                        .latency_us = way->latency_us,
                        .duplex = duplex});
      return;
    }
    double before_us = 0;
    for (const Hop& hop : from_.load_route(device)->hops) {
      raise(hop, way->bytes_per_s);
      if (hop.link != at) before_us += from_.link(hop.link).latency_us;
    }
    Link& link = links_[at.index()];
    link.bytes_per_s = way->bytes_per_s;
    link.latency_us = rounded(std::max(0.0, way->latency_us - before_us));
    if (link.duplex != Duplex::kOneWay) link.duplex = duplex;
  }

  void set_peers(DeviceId a, DeviceId b) {
    const auto way = slower(a, b);
    if (!way) return;
    bool found = false;
    for (Link& link : links_) {
      const bool between = (link.a == from_.device_node(a) && link.b == from_.device_node(b)) ||
                           (link.a == from_.device_node(b) && link.b == from_.device_node(a));
      if (!between) continue;
      found = true;
      link.bytes_per_s = way->bytes_per_s;
      link.latency_us = way->latency_us;
      if (link.bus.valid()) raise(buses_[link.bus.index()], way->bytes_per_s);
    }
    if (!found && way->direct)
      links_.push_back({.a = from_.device_node(a),
                        .b = from_.device_node(b),
                        .bytes_per_s = way->bytes_per_s,
                        .latency_us = way->latency_us});
  }

  bool was_measured(DeviceId device) const {
    return find(DeviceId(), device) != nullptr || find(device, DeviceId()) != nullptr;
  }

  // False if some device on the bus was not measured: then the bus is left unchanged.
  bool all_measured_on(BusId bus) const {
    for (size_t d = 0; d < from_.num_devices(); ++d) {
      const LinkId at = host_link(DeviceId(d));
      if (at.valid() && from_.link(at).bus == bus && !was_measured(DeviceId(d))) return false;
    }
    return true;
  }

  // Buses as measured: assignments from the file are dropped for measured devices. Links between devices keep
  // their bus.
  void set_buses() {
    for (size_t d = 0; d < from_.num_devices(); ++d) {
      const LinkId at = host_link(DeviceId(d));
      if (at.valid() && all_measured_on(from_.link(at).bus)) links_[at.index()].bus = BusId();
    }
    for (const SharedWays& set : measured_.shared) {
      const BusId bus = bus_for(set);
      Bus& b = buses_[bus.index()];
      b.bytes_per_s = rounded(set.bytes_per_s);
      b.duplex = Duplex::kFull;
      for (const DeviceId device : set.devices) {
        // A single transfer has its link's whole rate.
        const auto way = slower(DeviceId(), device);
        if (way) b.bytes_per_s = std::max(b.bytes_per_s, way->bytes_per_s);
        if (is_half_duplex(device)) b.duplex = Duplex::kHalf;
        const LinkId at = host_link(device);
        const LinkId link = at.valid() ? at : added_link(device);
        if (link.valid()) links_[link.index()].bus = bus;
        for (const Hop& hop : hops_before(device)) raise(hop, rounded(set.bytes_per_s));
      }
    }
  }
  std::span<const Hop> hops_before(DeviceId device) const {
    const Route* route = from_.load_route(device);
    if (route == nullptr || route->hops.empty()) return {};
    return std::span(route->hops).first(route->hops.size() - 1);
  }
  LinkId added_link(DeviceId device) const {
    const NodeId host = from_.host_node(from_.device(device).host);
    for (size_t i = from_.links().size(); i < links_.size(); ++i) {
      if (links_[i].a == host && links_[i].b == from_.device_node(device)) return LinkId(i);
    }
    return {};
  }
  BusId bus_for(const SharedWays& set) {
    BusId common;
    bool all = true;
    for (const DeviceId device : set.devices) {
      const LinkId at = host_link(device);
      const BusId bus = at.valid() ? from_.link(at).bus : BusId();
      all = all && bus.valid() && (!common.valid() || bus == common) &&
            std::find(taken_.begin(), taken_.end(), bus) == taken_.end();
      common = bus;
    }
    if (!all || !common.valid()) {
      common = BusId(buses_.size());
      buses_.push_back({.name = free_bus_name()});
      on_bus_before_.push_back(0);
    }
    taken_.push_back(common);
    return common;
  }
  std::string free_bus_name() const {
    for (int i = 0;; ++i) {
      const std::string name = "shared" + std::to_string(i);
      if (std::none_of(buses_.begin(), buses_.end(), [&](const Bus& b) { return b.name == name; }))
        return name;
    }
  }

  Result<std::shared_ptr<const Cluster>> rebuilt() const {
    ClusterBuilder builder(from_.name());
    for (const Host& host : from_.hosts()) builder.add_host(host);
    for (const Device& device : from_.devices()) builder.add_device(device);
    const std::vector<NodeId> node = builder.add_nodes_of(from_);
    std::vector<int> on_bus(buses_.size(), 0);
    for (const Link& link : links_) {
      if (link.bus.valid()) ++on_bus[link.bus.index()];
    }
    std::vector<BusId> bus(buses_.size());
    for (size_t b = 0; b < buses_.size(); ++b) {
      // Drop buses that all of their links have left.
      if (on_bus[b] > 0 || on_bus_before_[b] == 0) bus[b] = builder.add_bus(buses_[b]);
    }
    for (Link link : links_) {
      link.a = node[link.a.index()];
      link.b = node[link.b.index()];
      if (link.bus.valid()) link.bus = bus[link.bus.index()];
      builder.add_link(std::move(link));
    }
    return builder.build();
  }

  const Cluster& from_;
  const MeasuredLinks& measured_;
  std::vector<Link> links_;  // the cluster's, with its ids; then new ones
  std::vector<Bus> buses_;
  std::vector<int> on_bus_before_;
  std::vector<BusId> taken_;
};

}  // namespace

Result<std::shared_ptr<const Cluster>> with_measured_links(const Cluster& cluster,
                                                           const MeasuredLinks& measured) {
  return MeasuredEditor(cluster, measured).run();
}

}  // namespace heddle
