#include "spec.h"

#include <fmt/format.h>

#include <span>
#include <unordered_map>

#include "heddle/base/spelling.h"
#include "validate.h"

namespace heddle {
namespace {

Error at(const std::string& where, std::string message) {
  return Error(Code::kInvalidInput, std::move(message)).with_context(where);
}

// Names of one kind of item, each with the place that defined it.
template <class IdType>
class NameTable {
 public:
  explicit NameTable(std::string what) : what_(std::move(what)) {}

  Status add(const std::string& name, IdType id, const std::string& where) {
    const auto [it, fresh] = entries_.emplace(name, Entry{id, where});
    if (!fresh) {
      return at(where, fmt::format("the name '{}' is taken by the {} at {}; each needs its own", name, what_,
                                   it->second.where));
    }
    names_.push_back(name);
    return {};
  }
  Result<IdType> find(const NamedPlace& place) const {
    const auto it = entries_.find(place.name);
    if (it != entries_.end()) return it->second.id;
    const std::string known =
        names_.empty() ? fmt::format("the file has no {}", what_) : "expected " + join_names(names_);
    return at(place.where, fmt::format("no {} is named '{}'{}; {}", what_, place.name,
                                       did_you_mean(place.name, names_), known));
  }

 private:
  struct Entry {
    IdType id;
    std::string where;
  };
  std::string what_;
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> names_;
};

Status add_devices(ClusterSpec& spec, ClusterBuilder& builder, const NameTable<HostId>& hosts,
                   NameTable<NodeId>& nodes) {
  for (auto& entry : spec.devices) {
    if (entry.host) {
      HEDDLE_ASSIGN_OR_RETURN(entry.device.host, hosts.find(*entry.host));
    } else if (spec.hosts.size() == 1) {
      entry.device.host = HostId(0);
    } else {
      return at(entry.where,
                fmt::format("the device '{}' names no host; with {} hosts in the file, 'host' is required",
                            entry.device.name, spec.hosts.size()));
    }
    const std::string name = entry.device.name;
    const DeviceId id = builder.add_device(std::move(entry.device));
    HEDDLE_RETURN_IF_ERROR(nodes.add(name, builder.device_node(id), entry.where));
  }
  return {};
}

Status add_links(ClusterSpec& spec, ClusterBuilder& builder, const NameTable<NodeId>& nodes) {
  NameTable<BusId> buses("bus");
  for (auto& entry : spec.buses) {
    const std::string name = entry.bus.name;
    HEDDLE_RETURN_IF_ERROR(buses.add(name, builder.add_bus(std::move(entry.bus)), entry.where));
  }
  NameTable<LinkId> links("link");
  for (auto& entry : spec.links) {
    HEDDLE_ASSIGN_OR_RETURN(entry.link.a, nodes.find(entry.a));
    HEDDLE_ASSIGN_OR_RETURN(entry.link.b, nodes.find(entry.b));
    if (entry.link.a == entry.link.b) {
      return at(entry.b.where, fmt::format("the link joins '{}' with itself; name two ends", entry.a.name));
    }
    if (entry.bus) {
      HEDDLE_ASSIGN_OR_RETURN(entry.link.bus, buses.find(*entry.bus));
    }
    const std::string name = entry.link.name;
    const LinkId id = builder.add_link(std::move(entry.link));
    if (!name.empty()) HEDDLE_RETURN_IF_ERROR(links.add(name, id, entry.where));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Cluster>> assemble(ClusterSpec spec, const std::string& source) {
  ClusterBuilder builder(spec.name);
  NameTable<HostId> hosts("host");
  NameTable<NodeId> nodes("host, device or switch");
  for (auto& entry : spec.hosts) {
    const std::string name = entry.host.name;
    const HostId id = builder.add_host(std::move(entry.host));
    HEDDLE_RETURN_IF_ERROR(hosts.add(name, id, entry.where));
    HEDDLE_RETURN_IF_ERROR(nodes.add(name, builder.host_node(id), entry.where));
  }
  HEDDLE_RETURN_IF_ERROR(add_devices(spec, builder, hosts, nodes));
  for (const auto& entry : spec.switches) {
    HEDDLE_RETURN_IF_ERROR(nodes.add(entry.name, builder.add_switch(entry.name), entry.where));
  }
  HEDDLE_RETURN_IF_ERROR(add_links(spec, builder, nodes));
  auto built = builder.build();
  if (!built.ok()) return std::move(built).error().with_context(source);
  return built;
}

std::optional<DeviceKind> device_kind_from_name(std::string_view name) {
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kGpu, DeviceKind::kNpu, DeviceKind::kFpga}) {
    if (name == device_kind_name(kind)) return kind;
  }
  return std::nullopt;
}

const char* duplex_name(Duplex duplex) {
  switch (duplex) {
    case Duplex::kFull:
      return "full";
    case Duplex::kHalf:
      return "half";
    case Duplex::kOneWay:
      return "one-way";
  }
  return "unknown";
}

std::optional<Duplex> duplex_from_name(std::string_view name) {
  for (Duplex duplex : {Duplex::kFull, Duplex::kHalf, Duplex::kOneWay}) {
    if (name == duplex_name(duplex)) return duplex;
  }
  return std::nullopt;
}

}  // namespace heddle
