// The cluster inside plan files: the YAML's content in base units, so that plans need no unit parser.
#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "spec.h"
#include "validate.h"

namespace heddle {
namespace {

constexpr double kMaxRate = 1e30;  // finite, with room to multiply

Json device_to_json(const Cluster& cluster, const Device& d) {
  Json j = {{"name", d.name},
            {"kind", device_kind_name(d.kind)},
            {"class", d.device_class},
            {"host", cluster.host(d.host).name}};
  if (d.memory_bytes > 0) j["memory_bytes"] = d.memory_bytes;
  if (d.peak_flops > 0) j["flops"] = d.peak_flops;
  if (d.memory_bytes_per_s > 0) j["memory_bytes_per_s"] = d.memory_bytes_per_s;
  if (d.op_overhead_us > 0) j["op_overhead_us"] = d.op_overhead_us;
  if (d.speed != 1) j["speed"] = d.speed;
  if (!d.cores.empty()) j["cores"] = d.cores;
  if (d.copy_engines != 2) j["copy_engines"] = d.copy_engines;
  if (d.backend != "emulated") j["backend"] = d.backend;
  if (!d.backend_device.empty()) j["backend_device"] = d.backend_device;
  if (!d.target.empty()) j["target"] = d.target;
  return j;
}

Json link_to_json(const Cluster& cluster, const Link& l) {
  Json j = {{"name", l.name},
            {"from", cluster.node(l.a).name},
            {"to", cluster.node(l.b).name},
            {"bytes_per_s", l.bytes_per_s},
            {"latency_us", l.latency_us},
            {"duplex", duplex_name(l.duplex)}};
  if (l.bus.valid()) j["bus"] = cluster.bus(l.bus).name;
  return j;
}

Result<NamedPlace> named(const JsonCursor& c, std::string_view key) {
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor at, c.at(key));
  HEDDLE_ASSIGN_OR_RETURN(std::string name, at.as_string());
  if (name.empty() || name.size() > kMaxNameBytes) return at.error("a name of 1 to 200 bytes is expected");
  return NamedPlace{std::move(name), at.path()};
}

Result<Duplex> duplex_at(const JsonCursor& c, Duplex fallback) {
  if (!c.has("duplex")) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor at, c.at("duplex"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, at.as_string());
  const auto duplex = duplex_from_name(name);
  if (!duplex) return at.error("'" + name + "' is no duplex; expected 'full', 'half' or 'one-way'");
  return *duplex;
}

Result<ClusterSpec::HostEntry> host_from(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"name", "memory_bytes"}));
  HEDDLE_ASSIGN_OR_RETURN(auto name, named(c, "name"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t memory, c.int_or("memory_bytes", 0, 0));
  return ClusterSpec::HostEntry{{.name = std::move(name.name), .memory_bytes = memory}, c.path()};
}

Status read_rates(const JsonCursor& c, Device& d) {
  HEDDLE_ASSIGN_OR_RETURN(d.memory_bytes, c.int_or("memory_bytes", 0, 0));
  HEDDLE_ASSIGN_OR_RETURN(d.peak_flops, c.number_or("flops", 0, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(d.memory_bytes_per_s, c.number_or("memory_bytes_per_s", 0, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(d.op_overhead_us, c.number_or("op_overhead_us", 0, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(d.speed, c.number_or("speed", 1, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t engines, c.int_or("copy_engines", 2, 0, 2));
  d.copy_engines = static_cast<int>(engines);
  if (!c.has("cores")) return {};
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor at, c.at("cores"));
  HEDDLE_ASSIGN_OR_RETURN(const auto cores, at.as_ints(0, kMaxCore));
  d.cores.assign(cores.begin(), cores.end());
  return {};
}

Result<ClusterSpec::DeviceEntry> device_from(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"name", "kind", "class", "host", "memory_bytes", "flops",
                                       "memory_bytes_per_s", "op_overhead_us", "speed", "cores",
                                       "copy_engines", "backend", "backend_device", "target"}));
  ClusterSpec::DeviceEntry entry{.device = {}, .host = {}, .where = c.path()};
  HEDDLE_ASSIGN_OR_RETURN(auto name, named(c, "name"));
  entry.device.name = std::move(name.name);
  HEDDLE_ASSIGN_OR_RETURN(const auto kind, named(c, "kind"));
  const auto known = device_kind_from_name(kind.name);
  if (!known) return c.error("'" + kind.name + "' is no device kind; expected 'cpu', 'gpu', 'npu' or 'fpga'");
  entry.device.kind = *known;
  HEDDLE_ASSIGN_OR_RETURN(entry.device.device_class, c.string_or("class", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.host, named(c, "host"));
  HEDDLE_RETURN_IF_ERROR(read_rates(c, entry.device));
  HEDDLE_ASSIGN_OR_RETURN(entry.device.backend, c.string_or("backend", "emulated"));
  HEDDLE_ASSIGN_OR_RETURN(entry.device.backend_device, c.string_or("backend_device", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.device.target, c.string_or("target", ""));
  return entry;
}

Result<ClusterSpec::BusEntry> bus_from(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"name", "bytes_per_s", "duplex"}));
  HEDDLE_ASSIGN_OR_RETURN(auto name, named(c, "name"));
  HEDDLE_ASSIGN_OR_RETURN(const double rate, c.number_or("bytes_per_s", 0, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(const Duplex duplex, duplex_at(c, Duplex::kHalf));
  if (duplex == Duplex::kOneWay) return c.error("a bus cannot be 'one-way'; expected 'full' or 'half'");
  return ClusterSpec::BusEntry{{.name = std::move(name.name), .bytes_per_s = rate, .duplex = duplex},
                               c.path()};
}

Result<ClusterSpec::LinkEntry> link_from(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"name", "from", "to", "bytes_per_s", "latency_us", "duplex", "bus"}));
  ClusterSpec::LinkEntry entry{.link = {}, .a = {}, .b = {}, .bus = {}, .where = c.path()};
  HEDDLE_ASSIGN_OR_RETURN(entry.link.name, c.string_or("name", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.a, named(c, "from"));
  HEDDLE_ASSIGN_OR_RETURN(entry.b, named(c, "to"));
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor rate, c.at("bytes_per_s"));
  HEDDLE_ASSIGN_OR_RETURN(entry.link.bytes_per_s, rate.as_number(0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(entry.link.latency_us, c.number_or("latency_us", 0, 0, kMaxRate));
  HEDDLE_ASSIGN_OR_RETURN(entry.link.duplex, duplex_at(c, Duplex::kFull));
  if (c.has("bus")) {
    HEDDLE_ASSIGN_OR_RETURN(entry.bus, named(c, "bus"));
  }
  return entry;
}

template <class Entry, class Read>
Status read_list(const JsonCursor& c, std::string_view key, size_t max_size, Read read,
                 std::vector<Entry>& into) {
  if (!c.has(key)) return {};
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor list, c.at(key));
  HEDDLE_ASSIGN_OR_RETURN(const auto elements, list.elements(max_size));
  for (const JsonCursor& element : elements) {
    HEDDLE_ASSIGN_OR_RETURN(auto entry, read(element));
    into.push_back(std::move(entry));
  }
  return {};
}

Result<NamedPlace> switch_from(const JsonCursor& c) {
  HEDDLE_ASSIGN_OR_RETURN(std::string name, c.as_string());
  if (name.empty() || name.size() > kMaxNameBytes) return c.error("a name of 1 to 200 bytes is expected");
  return NamedPlace{std::move(name), c.path()};
}

}  // namespace

Json cluster_to_json(const Cluster& cluster) {
  Json j = {{"name", cluster.name()}};
  Json hosts = Json::array(), devices = Json::array(), switches = Json::array();
  for (const Host& h : cluster.hosts()) {
    Json host = {{"name", h.name}};
    if (h.memory_bytes > 0) host["memory_bytes"] = h.memory_bytes;
    hosts.push_back(std::move(host));
  }
  for (const Device& d : cluster.devices()) devices.push_back(device_to_json(cluster, d));
  for (const Node& n : cluster.nodes()) {
    if (n.kind == Node::Kind::kSwitch) switches.push_back(n.name);
  }
  Json buses = Json::array(), links = Json::array();
  for (const Bus& b : cluster.buses()) {
    Json bus = {{"name", b.name}, {"duplex", duplex_name(b.duplex)}};
    if (b.bytes_per_s > 0) bus["bytes_per_s"] = b.bytes_per_s;
    buses.push_back(std::move(bus));
  }
  for (const Link& l : cluster.links()) links.push_back(link_to_json(cluster, l));
  j["hosts"] = std::move(hosts);
  j["devices"] = std::move(devices);
  if (!switches.empty()) j["switches"] = std::move(switches);
  if (!buses.empty()) j["buses"] = std::move(buses);
  if (!links.empty()) j["links"] = std::move(links);
  return j;
}

Result<std::shared_ptr<const Cluster>> cluster_from_json(const JsonCursor& c) {
  HEDDLE_RETURN_IF_ERROR(c.check_keys({"name", "hosts", "devices", "switches", "buses", "links"}));
  ClusterSpec spec;
  HEDDLE_ASSIGN_OR_RETURN(auto name, named(c, "name"));
  spec.name = std::move(name.name);
  HEDDLE_RETURN_IF_ERROR(read_list(c, "hosts", kMaxNodes, host_from, spec.hosts));
  HEDDLE_RETURN_IF_ERROR(read_list(c, "devices", kMaxNodes, device_from, spec.devices));
  HEDDLE_RETURN_IF_ERROR(read_list(c, "switches", kMaxNodes, switch_from, spec.switches));
  HEDDLE_RETURN_IF_ERROR(read_list(c, "buses", kMaxLinks, bus_from, spec.buses));
  HEDDLE_RETURN_IF_ERROR(read_list(c, "links", kMaxLinks, link_from, spec.links));
  return assemble(std::move(spec), c.path());
}

}  // namespace heddle
