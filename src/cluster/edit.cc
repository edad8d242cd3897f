#include "heddle/cluster/edit.h"

#include <algorithm>
#include <set>
#include <vector>

namespace heddle {
namespace {

constexpr double kMostMemory = 1e18;  // bytes

class Editor {
 public:
  Editor(const Cluster& from, const ClusterEdit& edit)
      : from_(from),
        edit_(edit),
        builder_(from.name()),
        node_(from.nodes().size()),
        twin_(from.nodes().size()),
        suffix_(free_suffix()) {}

  Result<std::shared_ptr<const Cluster>> run() {
    for (size_t h = 0; h < from_.hosts().size(); ++h) {
      Host host = from_.hosts()[h];
      host.memory_bytes = scaled_memory(host.memory_bytes);
      node_[from_.host_node(HostId(h)).index()] = builder_.host_node(builder_.add_host(std::move(host)));
    }
    for (size_t d = 0; d < from_.num_devices(); ++d) add_device(DeviceId(d));
    // Add the copies last, so that the other devices keep their ids.
    if (const auto id = from_.find_device(edit_.add); id.valid()) {
      for (const DeviceId same : from_.variants(id)) add_twin(same);
    }
    for (size_t n = 0; n < from_.nodes().size(); ++n) {
      if (from_.nodes()[n].kind == Node::Kind::kSwitch) node_[n] = builder_.add_switch(from_.nodes()[n].name);
    }
    for (const auto& bus : from_.buses()) builder_.add_bus(bus);
    for (const auto& link : from_.links()) add_links(link);
    return builder_.build();
  }

 private:
  // Gives all copies names of their own. A link may have a copy already: of when the device at its other end was added.
  std::string free_suffix() const {
    std::string suffix = "-more";
    const DeviceId added = from_.find_device(edit_.add);
    if (!added.valid()) return suffix;
    std::set<std::string> taken, copied;
    for (const Device& device : from_.devices()) taken.insert(device.name);
    for (const DeviceId same : from_.variants(added)) copied.insert(from_.device(same).name);
    for (const Link& link : from_.links()) {
      taken.insert(link.name);
      for (const NodeId end : {link.a, link.b}) {
        const DeviceId device = from_.node(end).device;
        if (device.valid() && from_.physical(device) == from_.physical(added)) copied.insert(link.name);
      }
    }
    const auto is_taken = [&](const std::string& name) { return taken.contains(name + suffix); };
    for (int n = 2; std::ranges::any_of(copied, is_taken); ++n) suffix = "-more" + std::to_string(n);
    return suffix;
  }

  // Not device_node(), which for a CPU without links is its host's node.
  size_t own_node(DeviceId id) const {
    size_t n = 0;
    while (from_.nodes()[n].device != id) ++n;
    return n;
  }

  // 0 is no limit; what is scaled keeps one.
  int64_t scaled_memory(int64_t bytes) const {
    if (bytes == 0 || edit_.memory == 1) return bytes;
    const double scaled = static_cast<double>(bytes) * edit_.memory;
    return std::max<int64_t>(1, static_cast<int64_t>(std::min(scaled, kMostMemory)));
  }

  void add_device(DeviceId id) {
    Device device = from_.device(id);
    device.memory_bytes = scaled_memory(device.memory_bytes);
    if (names_hardware_of(from_, edit_.remove, id)) return;
    if (names_hardware_of(from_, edit_.scale, id)) {
      device.speed *= edit_.factor;
      device.target.clear();
      device.device_class += "-scaled";
    }
    node_[own_node(id)] = builder_.device_node(builder_.add_device(device));
  }

  void add_twin(DeviceId id) {
    Device device = from_.device(id);
    device.memory_bytes = scaled_memory(device.memory_bytes);
    device.name += suffix_;
    if (!device.variant_of.empty()) device.variant_of += suffix_;
    // Cores of its own: it overlaps with no device but its variants, which need the numbers for that.
    const bool alone = from_.variants(id).size() == 1;
    if (alone) device.cores.clear();
    for (int& core : device.cores) core = free_core(device.host, core);
    twin_[own_node(id)] = builder_.device_node(builder_.add_device(device));
  }

  // A number that no device of the host has, another one for each core.
  int free_core(HostId host, int core) const {
    int above = 0;
    for (const Device& other : from_.devices()) {
      for (const int used : other.cores) above = other.host == host ? std::max(above, used + 1) : above;
    }
    return above + core;
  }

  void add_links(Link link) {
    if (link.name == edit_.scale) link.bytes_per_s *= edit_.factor;
    const auto a = link.a.index(), b = link.b.index();
    add_link(link, node_[a], node_[b], "");
    add_link(link, twin_[a], node_[b], suffix_);
    add_link(link, node_[a], twin_[b], suffix_);
  }

  void add_link(Link link, NodeId a, NodeId b, const std::string& suffix) {
    if (!a.valid() || !b.valid()) return;
    link.a = a;
    link.b = b;
    link.name += suffix;
    builder_.add_link(link);
  }

  const Cluster& from_;
  const ClusterEdit& edit_;
  ClusterBuilder builder_;
  std::vector<NodeId> node_, twin_;
  std::string suffix_;  // of the names of what is added
};

}  // namespace

bool names_hardware_of(const Cluster& cluster, const std::string& name, DeviceId device) {
  const DeviceId named = cluster.find_device(name);
  return named.valid() && cluster.physical(named) == cluster.physical(device);
}

Result<std::shared_ptr<const Cluster>> edit_cluster(const Cluster& cluster, const ClusterEdit& edit) {
  return Editor(cluster, edit).run();
}

}  // namespace heddle
