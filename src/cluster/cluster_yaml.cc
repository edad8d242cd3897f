#include "heddle/cluster/cluster_yaml.h"

#include <fmt/format.h>

#include "spec.h"
#include "validate.h"
#include "yaml_view.h"

namespace heddle {
namespace {

Result<NamedPlace> read_name(const YamlView& v, std::string_view key) {
  HEDDLE_ASSIGN_OR_RETURN(auto value, v.required_scalar(key));
  return NamedPlace{std::move(value.text), std::move(value.where)};
}

Result<std::optional<NamedPlace>> read_optional_name(const YamlView& v, std::string_view key) {
  HEDDLE_ASSIGN_OR_RETURN(auto value, v.scalar(key));
  if (!value) return std::optional<NamedPlace>();
  return std::optional<NamedPlace>(NamedPlace{std::move(value->text), std::move(value->where)});
}

Result<std::string> read_text_or(const YamlView& v, std::string_view key, std::string fallback) {
  HEDDLE_ASSIGN_OR_RETURN(auto value, v.scalar(key));
  return value ? std::move(value->text) : std::move(fallback);
}

Result<Duplex> read_duplex(const YamlView& v, Duplex fallback, bool one_way_allowed) {
  HEDDLE_ASSIGN_OR_RETURN(const auto value, v.scalar("duplex"));
  if (!value) return fallback;
  const auto duplex = duplex_from_name(value->text);
  if (duplex && (one_way_allowed || *duplex != Duplex::kOneWay)) return *duplex;
  return Error(Code::kInvalidInput,
               fmt::format("'duplex' is '{}'; expected {}", value->text,
                           one_way_allowed ? "'full', 'half' or 'one-way'" : "'full' or 'half'"))
      .with_context(value->where);
}

Result<ClusterSpec::HostEntry> read_host(const YamlView& v) {
  HEDDLE_RETURN_IF_ERROR(v.check_keys({"name", "memory"}));
  ClusterSpec::HostEntry entry{.host = {}, .where = v.where()};
  HEDDLE_ASSIGN_OR_RETURN(const auto name, read_name(v, "name"));
  entry.host.name = name.name;
  HEDDLE_ASSIGN_OR_RETURN(entry.host.memory_bytes, v.bytes_or("memory", 0));
  return entry;
}

Status read_backend(const YamlView& v, Device& device) {
  HEDDLE_ASSIGN_OR_RETURN(const auto backend, v.scalar("backend"));
  if (backend) {
    if (backend->text != "openvino" && backend->text != "torch" && backend->text != "emulated") {
      return Error(
                 Code::kInvalidInput,
                 fmt::format("'backend' is '{}'; expected 'openvino', 'torch' or 'emulated'", backend->text))
          .with_context(backend->where);
    }
    device.backend = backend->text;
  }
  HEDDLE_ASSIGN_OR_RETURN(device.backend_device, read_text_or(v, "backend_device", ""));
  HEDDLE_ASSIGN_OR_RETURN(device.target, read_text_or(v, "target", ""));
  return {};
}

Status read_rates(const YamlView& v, Device& device) {
  HEDDLE_ASSIGN_OR_RETURN(device.memory_bytes, v.bytes_or("memory", 0));
  if (device.kind == DeviceKind::kCpu && device.memory_bytes != 0) {
    return v.error(fmt::format(
        "the cpu '{}' has its own 'memory'; a cpu lives in its host's memory: set that of the host",
        device.name));
  }
  HEDDLE_ASSIGN_OR_RETURN(device.peak_flops, v.flops_or("flops", 0));
  HEDDLE_ASSIGN_OR_RETURN(device.memory_bytes_per_s, v.bandwidth_or("memory_bandwidth", 0.0, true));
  HEDDLE_ASSIGN_OR_RETURN(device.op_overhead_us, v.time_us_or("op_overhead", 0));
  HEDDLE_ASSIGN_OR_RETURN(device.speed, v.positive_number_or("speed", 1));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t engines, v.int_or("copy_engines", 2, 0, 2));
  device.copy_engines = static_cast<int>(engines);
  HEDDLE_ASSIGN_OR_RETURN(device.cores, v.cores("cores", kMaxCore));
  if (!device.cores.empty() && device.kind != DeviceKind::kCpu) {
    return v.error(
        fmt::format("the {} '{}' has 'cores'; only a cpu may", device_kind_name(device.kind), device.name));
  }
  return {};
}

Result<ClusterSpec::DeviceEntry> read_device(const YamlView& v) {
  HEDDLE_RETURN_IF_ERROR(
      v.check_keys({"name", "kind", "class", "host", "memory", "flops", "memory_bandwidth", "op_overhead",
                    "speed", "cores", "copy_engines", "backend", "backend_device", "target"}));
  ClusterSpec::DeviceEntry entry{.device = {}, .host = {}, .where = v.where()};
  HEDDLE_ASSIGN_OR_RETURN(const auto name, read_name(v, "name"));
  entry.device.name = name.name;
  HEDDLE_ASSIGN_OR_RETURN(const auto kind, v.required_scalar("kind"));
  const auto known = device_kind_from_name(kind.text);
  if (!known) {
    return Error(Code::kInvalidInput,
                 fmt::format("'kind' is '{}'; expected 'cpu', 'gpu', 'npu' or 'fpga'", kind.text))
        .with_context(kind.where);
  }
  entry.device.kind = *known;
  HEDDLE_ASSIGN_OR_RETURN(entry.device.device_class, read_text_or(v, "class", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.host, read_optional_name(v, "host"));
  HEDDLE_RETURN_IF_ERROR(read_rates(v, entry.device));
  HEDDLE_RETURN_IF_ERROR(read_backend(v, entry.device));
  return entry;
}

Result<ClusterSpec::BusEntry> read_bus(const YamlView& v) {
  HEDDLE_RETURN_IF_ERROR(v.check_keys({"name", "bandwidth", "duplex"}));
  ClusterSpec::BusEntry entry{.bus = {}, .where = v.where()};
  HEDDLE_ASSIGN_OR_RETURN(const auto name, read_name(v, "name"));
  entry.bus.name = name.name;
  HEDDLE_ASSIGN_OR_RETURN(entry.bus.bytes_per_s, v.bandwidth_or("bandwidth", 0.0, true));
  HEDDLE_ASSIGN_OR_RETURN(entry.bus.duplex, read_duplex(v, Duplex::kHalf, false));
  return entry;
}

Status read_link_rates(const YamlView& v, ClusterSpec::LinkEntry& entry, bool one_way_allowed) {
  HEDDLE_ASSIGN_OR_RETURN(entry.link.bytes_per_s, v.bandwidth_or("bandwidth", std::nullopt, false));
  HEDDLE_ASSIGN_OR_RETURN(entry.link.latency_us, v.time_us_or("latency", 0));
  HEDDLE_ASSIGN_OR_RETURN(entry.link.duplex, read_duplex(v, Duplex::kFull, one_way_allowed));
  HEDDLE_ASSIGN_OR_RETURN(entry.bus, read_optional_name(v, "bus"));
  return {};
}

Result<ClusterSpec::LinkEntry> read_link(const YamlView& v) {
  HEDDLE_RETURN_IF_ERROR(v.check_keys({"name", "from", "to", "bandwidth", "latency", "duplex", "bus"}));
  ClusterSpec::LinkEntry entry{.link = {}, .a = {}, .b = {}, .bus = {}, .where = v.where()};
  HEDDLE_ASSIGN_OR_RETURN(entry.link.name, read_text_or(v, "name", ""));
  HEDDLE_ASSIGN_OR_RETURN(entry.a, read_name(v, "from"));
  HEDDLE_ASSIGN_OR_RETURN(entry.b, read_name(v, "to"));
  HEDDLE_RETURN_IF_ERROR(read_link_rates(v, entry, true));
  return entry;
}

// A NIC is a link between a host's memory and the switch that represents its network.
Result<ClusterSpec::LinkEntry> read_nic(const YamlView& v) {
  HEDDLE_RETURN_IF_ERROR(v.check_keys({"name", "host", "network", "bandwidth", "latency", "duplex", "bus"}));
  ClusterSpec::LinkEntry entry{.link = {}, .a = {}, .b = {}, .bus = {}, .where = v.where()};
  HEDDLE_ASSIGN_OR_RETURN(const auto name, read_name(v, "name"));
  entry.link.name = name.name;
  HEDDLE_ASSIGN_OR_RETURN(entry.a, read_name(v, "host"));
  HEDDLE_ASSIGN_OR_RETURN(entry.b, read_name(v, "network"));
  HEDDLE_RETURN_IF_ERROR(read_link_rates(v, entry, false));
  return entry;
}

template <class Entry, class Read>
Status read_list(const YamlView& root, std::string_view key, const std::string& what, Read read,
                 std::vector<Entry>& into) {
  HEDDLE_ASSIGN_OR_RETURN(const auto views, root.elements(key, what));
  for (const YamlView& view : views) {
    HEDDLE_ASSIGN_OR_RETURN(auto entry, read(view));
    into.push_back(std::move(entry));
  }
  return {};
}

Result<ClusterSpec> read_spec(const YamlView& root) {
  HEDDLE_RETURN_IF_ERROR(root.check_keys({"name", "hosts", "devices", "switches", "buses", "links", "nics"}));
  ClusterSpec spec;
  HEDDLE_ASSIGN_OR_RETURN(const auto name, read_name(root, "name"));
  spec.name = name.name;
  HEDDLE_RETURN_IF_ERROR(read_list(root, "hosts", "a host", read_host, spec.hosts));
  HEDDLE_RETURN_IF_ERROR(read_list(root, "devices", "a device", read_device, spec.devices));
  HEDDLE_ASSIGN_OR_RETURN(const auto switches, root.scalars("switches"));
  for (const auto& s : switches) spec.switches.push_back({s.text, s.where});
  HEDDLE_RETURN_IF_ERROR(read_list(root, "buses", "a bus", read_bus, spec.buses));
  HEDDLE_RETURN_IF_ERROR(read_list(root, "links", "a link", read_link, spec.links));
  HEDDLE_RETURN_IF_ERROR(read_list(root, "nics", "a nic", read_nic, spec.links));
  if (spec.hosts.empty()) return root.error("the cluster has no host; add one under 'hosts'");
  if (spec.devices.empty()) return root.error("the cluster has no device; add one under 'devices'");
  return spec;
}

}  // namespace

Result<std::shared_ptr<const Cluster>> parse_cluster_yaml(std::string_view text, const std::string& source) {
  HEDDLE_ASSIGN_OR_RETURN(auto document, parse_yaml_document(text, source));
  try {
    HEDDLE_ASSIGN_OR_RETURN(auto spec, read_spec(YamlView(std::move(document), &source, "the cluster")));
    return assemble(std::move(spec), source);
  } catch (const std::exception& e) {  // yaml-cpp throws on input that the checks above missed
    return Error(Code::kInvalidInput, fmt::format("not a cluster file: {}", e.what())).with_context(source);
  }
}

}  // namespace heddle
