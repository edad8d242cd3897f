#include "heddle/cluster/cluster.h"

#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "routes.h"
#include "validate.h"

namespace heddle {

DeviceId Cluster::find_device(std::string_view name) const {
  DeviceId only;
  int variants = 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d].name == name) return DeviceId(d);
    if (hardware_name(devices_[d].name) != name) continue;
    only = DeviceId(d);
    ++variants;
  }
  return variants == 1 ? only : DeviceId();
}

std::vector<DeviceId> Cluster::variants(DeviceId id) const {
  std::vector<DeviceId> same;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (physical_[d] == physical(id)) same.emplace_back(d);
  }
  return same;
}

const Route* Cluster::route(NodeId from, NodeId to) const {
  const auto& r = routes_[from.index() * nodes_.size() + to.index()];
  return r ? &*r : nullptr;
}

const Route* Cluster::route(DeviceId from, DeviceId to) const {
  return route(device_node(from), device_node(to));
}

const Route* Cluster::load_route(DeviceId to) const {
  const NodeId host = host_node(device(to).host);
  // A CPU device computes in host memory: what is there counts as loaded, whatever its hand-over link costs.
  return device(to).kind == DeviceKind::kCpu ? route(host, host) : route(host, device_node(to));
}

HostId ClusterBuilder::add_host(Host host) {
  const HostId id(cluster_.hosts_.size());
  cluster_.host_nodes_.push_back(NodeId(cluster_.nodes_.size()));
  cluster_.nodes_.push_back({.kind = Node::Kind::kHostMemory, .name = host.name, .host = id, .device = {}});
  cluster_.hosts_.push_back(std::move(host));
  return id;
}

DeviceId ClusterBuilder::add_device(Device device) {
  const DeviceId id(cluster_.devices_.size());
  cluster_.device_nodes_.push_back(NodeId(cluster_.nodes_.size()));
  cluster_.nodes_.push_back({.kind = Node::Kind::kDevice, .name = device.name, .host = {}, .device = id});
  cluster_.devices_.push_back(std::move(device));
  return id;
}

NodeId ClusterBuilder::add_switch(std::string name) {
  const NodeId id(cluster_.nodes_.size());
  cluster_.nodes_.push_back({.kind = Node::Kind::kSwitch, .name = std::move(name), .host = {}, .device = {}});
  return id;
}

std::vector<NodeId> ClusterBuilder::add_nodes_of(const Cluster& from) {
  std::vector<NodeId> node;
  for (const Node& n : from.nodes()) {
    node.push_back(n.kind == Node::Kind::kHostMemory ? host_node(n.host)
                   : n.kind == Node::Kind::kDevice   ? device_node(n.device)
                                                     : add_switch(n.name));
  }
  return node;
}

BusId ClusterBuilder::add_bus(Bus bus) {
  cluster_.buses_.push_back(std::move(bus));
  return BusId(cluster_.buses_.size() - 1);
}

LinkId ClusterBuilder::add_link(Link link) {
  cluster_.links_.push_back(std::move(link));
  return LinkId(cluster_.links_.size() - 1);
}

namespace {

bool share_a_core(const Device& a, const Device& b) {
  return a.host == b.host && std::any_of(a.cores.begin(), a.cores.end(), [&](int core) {
           return std::binary_search(b.cores.begin(), b.cores.end(), core);
         });
}

std::vector<std::vector<DeviceId>> find_overlaps(std::span<const Device> devices) {
  std::vector<std::vector<DeviceId>> overlaps(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].cores.empty()) continue;
    for (size_t j = 0; j < devices.size(); ++j) {
      if (i != j && share_a_core(devices[i], devices[j])) overlaps[i].push_back(DeviceId(j));
    }
  }
  return overlaps;
}

// One pool for all CPU devices of a host, one for each other device; numbered in device order.
void assign_pools(std::span<const Host> hosts, std::span<const Device> devices, std::vector<int>& pool_of,
                  std::vector<int64_t>& bytes) {
  std::vector<int> host_pool(hosts.size(), -1);
  for (const Device& d : devices) {
    const bool cpu = d.kind == DeviceKind::kCpu;
    int pool = cpu ? host_pool[d.host.index()] : -1;
    if (pool < 0) {
      pool = static_cast<int>(bytes.size());
      bytes.push_back(cpu ? hosts[d.host.index()].memory_bytes : d.memory_bytes);
      if (cpu) host_pool[d.host.index()] = pool;
    }
    pool_of.push_back(pool);
  }
}

}  // namespace

Result<std::shared_ptr<const Cluster>> ClusterBuilder::build() {
  Cluster& c = cluster_;
  HEDDLE_RETURN_IF_ERROR(validate_cluster(c.name_, c.hosts_, c.devices_, c.nodes_, c.links_, c.buses_));
  fill_defaults(c.devices_, c.nodes_, c.links_);
  // A CPU device without links is placed at its host's memory: a route to that memory reaches it.
  std::vector<bool> linked(c.nodes_.size(), false);
  for (const Link& l : c.links_) linked[l.a.index()] = linked[l.b.index()] = true;
  for (size_t i = 0; i < c.devices_.size(); ++i) {
    if (c.devices_[i].kind == DeviceKind::kCpu && !linked[c.device_nodes_[i].index()]) {
      c.device_nodes_[i] = c.host_nodes_[c.devices_[i].host.index()];
    }
  }
  for (size_t i = 0; i < c.devices_.size(); ++i) {
    const std::string& base = c.devices_[i].variant_of;
    c.physical_.push_back(base.empty() ? DeviceId(i) : c.find_device(base));
    c.device_nodes_[i] = c.device_nodes_[c.physical_[i].index()];
  }
  HEDDLE_ASSIGN_OR_RETURN(c.routes_, fastest_routes(c.nodes_, c.links_, c.buses_));
  c.overlaps_ = find_overlaps(c.devices_);
  assign_pools(c.hosts_, c.devices_, c.memory_pool_, c.pool_bytes_);
  return std::shared_ptr<const Cluster>(std::make_shared<Cluster>(std::move(cluster_)));
}

Result<DeviceId> device_named(const Cluster& cluster, const std::string& name) {
  if (const DeviceId id = cluster.find_device(name); id.valid()) return id;
  std::vector<std::string> names;
  for (const auto& device : cluster.devices()) names.push_back(device.name);
  return invalid_input("device " + name + ": cluster '" + cluster.name() + "' has no such device" +
                       did_you_mean(name, names) + "; there are " + join_names(names));
}

}  // namespace heddle
