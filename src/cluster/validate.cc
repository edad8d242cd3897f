#include "validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "names.h"

namespace heddle {
namespace {

Status check_number(double value, bool positive, const std::string& what) {
  if (std::isfinite(value) && (positive ? value > 0 : value >= 0)) return {};
  return invalid_input(fmt::format("{} is {}; expected a finite number {}", what, value,
                                   positive ? "above 0" : "of at least 0"));
}

Status check_text(const std::string& text, const std::string& what) {
  if (text.size() <= kMaxNameBytes && is_printable(text)) return {};
  return invalid_input(fmt::format("{} is not UTF-8 text of at most {} bytes without control characters",
                                   what, kMaxNameBytes));
}

Status check_names(std::span<const Node> nodes, std::span<const Link> links, std::span<const Bus> buses) {
  std::unordered_set<std::string> seen;
  for (const Node& n : nodes) {
    HEDDLE_RETURN_IF_ERROR(check_text(n.name, "the name of a host, device or switch"));
    if (n.name.empty()) return invalid_input("a host, device or switch has no name; give each one a name");
    if (!seen.insert(n.name).second) {
      return invalid_input(fmt::format(
          "two hosts, devices or switches are named '{}'; links refer to them by name, so each needs its own",
          n.name));
    }
  }
  seen.clear();
  for (const Bus& b : buses) {
    HEDDLE_RETURN_IF_ERROR(check_text(b.name, "the name of a bus"));
    if (b.name.empty()) return invalid_input("a bus has no name; give each one a name");
    if (!seen.insert(b.name).second)
      return invalid_input(fmt::format("two buses are named '{}'; each needs its own name", b.name));
  }
  seen.clear();
  for (const Link& l : links) {
    HEDDLE_RETURN_IF_ERROR(check_text(l.name, "the name of a link"));
    if (!l.name.empty() && !seen.insert(l.name).second) {
      return invalid_input(fmt::format("two links are named '{}'; each needs its own name", l.name));
    }
  }
  return {};
}

Status check_cores(const Device& d, const std::string& what) {
  if (d.cores.empty()) return {};
  if (d.kind != DeviceKind::kCpu) return invalid_input(what + " has cores, but only a cpu may; remove them");
  std::set<int> seen;
  for (int core : d.cores) {
    if (core < 0 || core > kMaxCore)
      return invalid_input(fmt::format("{} has core {}; expected 0 to {}", what, core, kMaxCore));
    if (!seen.insert(core).second) return invalid_input(fmt::format("{} names core {} twice", what, core));
  }
  return {};
}

// Core sets exclude each other, so a variant needs its physical device's.
Status check_variant(std::span<const Device> devices, size_t index) {
  const Device& d = devices[index];
  const std::string what = fmt::format("device '{}', a variant of '{}',", d.name, d.variant_of);
  const auto end = devices.begin() + static_cast<std::ptrdiff_t>(index);
  const auto base =
      std::find_if(devices.begin(), end, [&](const Device& other) { return other.name == d.variant_of; });
  if (base == end)
    return invalid_input(what + " has no such device before it; name one that stands before it");
  if (!base->variant_of.empty())
    return invalid_input(fmt::format("{} names a variant; name '{}' instead", what, base->variant_of));
  if (d.cores.empty())
    return invalid_input(what + " has no cores; only a cpu that states its cores may have variants");
  if (std::set(d.cores.begin(), d.cores.end()) != std::set(base->cores.begin(), base->cores.end()) ||
      d.host != base->host || d.kind != base->kind)
    return invalid_input(what + " has another kind, host or cores; leave them out");
  for (auto other = devices.begin(); other != end; ++other) {
    const bool same = other == base || other->variant_of == d.variant_of;
    if (same && variant_of(*other) == variant_of(d))
      return invalid_input(fmt::format("{} has engine and precision of '{}', {}; give it others", what,
                                       other->name, variant_text(variant_of(d))));
  }
  return {};
}

Status check_link(const Link& l, size_t index, std::span<const Node> nodes, std::span<const Device> devices,
                  size_t num_buses) {
  const std::string what = l.name.empty() ? fmt::format("link {}", index) : fmt::format("link '{}'", l.name);
  for (NodeId end : {l.a, l.b}) {
    if (!end.valid() || end.index() >= nodes.size())
      return invalid_input(what + " ends at no host, device or switch of this cluster");
    const Node& node = nodes[end.index()];
    if (node.kind == Node::Kind::kDevice && !devices[node.device.index()].variant_of.empty())
      return invalid_input(fmt::format("{} ends at '{}', a variant; name the device '{}', whose links it has",
                                       what, node.name, devices[node.device.index()].variant_of));
  }
  if (l.a == l.b)
    return invalid_input(fmt::format("{} joins '{}' with itself", what, nodes[l.a.index()].name));
  if (l.bus.value < -1 || (l.bus.valid() && l.bus.index() >= num_buses))
    return invalid_input(what + " is on no bus of this cluster");
  HEDDLE_RETURN_IF_ERROR(check_number(l.bytes_per_s, true, "the bandwidth of " + what));
  return check_number(l.latency_us, false, "the latency of " + what);
}

}  // namespace

Status check_device(const Device& d, size_t num_hosts) {
  const std::string what = fmt::format("device '{}'", d.name);
  if (!d.host.valid() || d.host.index() >= num_hosts)
    return invalid_input(what + " is on no host of this cluster");
  HEDDLE_RETURN_IF_ERROR(check_text(d.device_class, "the class of " + what));
  HEDDLE_RETURN_IF_ERROR(check_text(d.backend_device, "the backend device of " + what));
  HEDDLE_RETURN_IF_ERROR(check_text(d.target, "the target of " + what));
  if (d.memory_bytes < 0) return invalid_input(what + " has a negative memory");
  if (d.kind == DeviceKind::kCpu && d.memory_bytes != 0) {
    return invalid_input(
        what + " is a cpu and has its own memory; a cpu lives in its host's memory: set that of the host");
  }
  HEDDLE_RETURN_IF_ERROR(check_number(d.peak_flops, false, "the peak FLOPS of " + what));
  HEDDLE_RETURN_IF_ERROR(check_number(d.memory_bytes_per_s, false, "the memory bandwidth of " + what));
  HEDDLE_RETURN_IF_ERROR(check_number(d.op_overhead_us, false, "the op overhead of " + what));
  HEDDLE_RETURN_IF_ERROR(check_number(d.speed, true, "the speed of " + what));
  if (d.copy_engines < 0 || d.copy_engines > 2) {
    return invalid_input(
        fmt::format("{} has {} copy engines; expected 0 (not limited), 1 or 2", what, d.copy_engines));
  }
  if (!is_engine(d.backend))
    return invalid_input(fmt::format("{} has the backend '{}'; expected {}", what, d.backend, kEnginesText));
  if (d.backend != "emulated" && d.backend_device.empty() && d.kind != DeviceKind::kCpu) {
    return invalid_input(fmt::format("{} runs on {} without a backend device; name one, for example '{}'",
                                     what, d.backend, d.backend == "torch" ? "cpu" : "GPU.0"));
  }
  return check_cores(d, what);
}

Status validate_cluster(const std::string& name, std::span<const Host> hosts, std::span<const Device> devices,
                        std::span<const Node> nodes, std::span<const Link> links,
                        std::span<const Bus> buses) {
  if (name.empty()) return invalid_input("the cluster has no name; give it one");
  HEDDLE_RETURN_IF_ERROR(check_text(name, "the name of the cluster"));
  if (devices.empty()) return invalid_input("the cluster has no device; add at least one");
  if (nodes.size() > kMaxNodes) {
    return invalid_input(fmt::format(
        "the cluster has {} hosts, devices and switches; at most {} are supported", nodes.size(), kMaxNodes));
  }
  if (links.size() > kMaxLinks)
    return invalid_input(
        fmt::format("the cluster has {} links; at most {} are supported", links.size(), kMaxLinks));
  HEDDLE_RETURN_IF_ERROR(check_names(nodes, links, buses));
  for (const Host& h : hosts) {
    if (h.memory_bytes < 0) return invalid_input(fmt::format("host '{}' has a negative memory", h.name));
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    HEDDLE_RETURN_IF_ERROR(check_device(devices[d], hosts.size()));
    if (!devices[d].variant_of.empty()) HEDDLE_RETURN_IF_ERROR(check_variant(devices, d));
  }
  for (const Bus& b : buses)
    HEDDLE_RETURN_IF_ERROR(
        check_number(b.bytes_per_s, false, fmt::format("the bandwidth of bus '{}'", b.name)));
  for (size_t i = 0; i < links.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(check_link(links[i], i, nodes, devices, buses.size()));
  return {};
}

void fill_defaults(std::vector<Device>& devices, std::span<const Node> nodes, std::vector<Link>& links) {
  for (Device& d : devices) {
    std::sort(d.cores.begin(), d.cores.end());
    if (d.device_class.empty()) d.device_class = d.name;
    const bool named_cpu = d.backend == "openvino" || d.backend == "onnxruntime";
    if (named_cpu && d.backend_device.empty()) d.backend_device = "CPU";
    if (d.backend == "torch" && d.backend_device.empty()) d.backend_device = "cpu";
  }
  std::unordered_set<std::string> taken;
  for (const Link& l : links) taken.insert(l.name);
  for (Link& l : links) {
    if (!l.name.empty()) continue;
    const std::string base = nodes[l.a.index()].name + "-" + nodes[l.b.index()].name;
    l.name = base;
    for (int n = 2; !taken.insert(l.name).second; ++n) l.name = fmt::format("{}#{}", base, n);
  }
}

}  // namespace heddle
