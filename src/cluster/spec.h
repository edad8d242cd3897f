// A cluster as written in a file: references are names with places. Filled by both readers (YAML, JSON).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// A name in a file and its place ("file.yaml:12" or "$.links[3]").
struct NamedPlace {
  std::string name;
  std::string where;
};

struct ClusterSpec {
  struct HostEntry {
    Host host;
    std::string where;
  };
  struct DeviceEntry {
    Device device;
    std::optional<NamedPlace> host;  // if absent, the file's only host
    std::string where;
  };
  struct BusEntry {
    Bus bus;
    std::string where;
  };
  struct LinkEntry {
    Link link;
    NamedPlace a, b;
    std::optional<NamedPlace> bus;
    std::string where;
  };
  std::string name;
  std::vector<HostEntry> hosts;
  std::vector<DeviceEntry> devices;
  std::vector<NamedPlace> switches;
  std::vector<BusEntry> buses;
  std::vector<LinkEntry> links;
};

// Resolves the names; `source` is the context of errors without a place of their own.
Result<std::shared_ptr<const Cluster>> assemble(ClusterSpec spec, const std::string& source);

std::optional<DeviceKind> device_kind_from_name(std::string_view name);
const char* duplex_name(Duplex duplex);  // "full", "half", "one-way"
std::optional<Duplex> duplex_from_name(std::string_view name);

}  // namespace heddle
