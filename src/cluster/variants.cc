#include "heddle/cluster/variants.h"

#include <algorithm>
#include <string_view>

#include "heddle/cluster/catalogue.h"
#include "names.h"

namespace heddle {
namespace {

std::string suffix(const Device& device, const Variant& variant) {
  std::string text;
  if (variant.backend != device.backend) text += "+" + variant.backend;
  if (variant.precision != device.precision) text += std::string("+") + precision_name(variant.precision);
  return text;
}

// "openvino:CPU:2" becomes "onnxruntime:CPU:2:bf16". Times of other engines and precisions never mix.
std::string target_of(const Device& device, const Variant& variant) {
  std::string text = device.target;
  if (text.empty()) return text;
  const size_t last = text.rfind(':');
  if (last != std::string::npos && precision_from_name(std::string_view(text).substr(last + 1)))
    text.resize(last);
  const size_t first = text.find(':');
  if (first != std::string::npos && is_engine(std::string_view(text).substr(0, first)))
    text = variant.backend + text.substr(first);
  else if (variant.backend != device.backend)
    text = variant.backend + ":" + text;
  if (variant.precision != Precision::kF32) text += std::string(":") + precision_name(variant.precision);
  return text;
}

}  // namespace

Variant variant_of(const Device& device) { return {device.backend, device.precision}; }

std::string variant_text(const Variant& variant) {
  return variant.backend +
         (variant.precision == Precision::kF32 ? "" : std::string(" ") + precision_name(variant.precision));
}

Device as_variant(Device device, const Variant& variant) {
  device.target = target_of(device, variant);
  // The name of the hardware is the engine's own, and the CPU's is a default of each engine.
  if (variant.backend != device.backend) device.backend_device.clear();
  device.backend = variant.backend;
  const CatalogueDevice* row = rated_by_catalogue(device);
  device.precision = variant.precision;
  if (row != nullptr) device.peak_flops = peak_flops(*row, device.precision);
  return device;
}

Device variant_beside(const Device& device, const Variant& variant) {
  Device beside = as_variant(device, variant);
  const std::string end = suffix(device, variant);
  beside.name += end;
  beside.device_class = (device.device_class.empty() ? device.name : device.device_class) + end;
  beside.variant_of = device.name;
  return beside;
}

Result<std::shared_ptr<const Cluster>> with_variants(const Cluster& cluster,
                                                     const std::vector<std::vector<Variant>>& by_device) {
  ClusterBuilder builder(cluster.name());
  for (const Host& host : cluster.hosts()) builder.add_host(host);
  std::vector<Device> more;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const auto& wanted = by_device[d];
    const Device& before = cluster.devices()[d];
    Device device = before;
    if (!wanted.empty()) {
      device = variant_beside(before, wanted.front());
      device.variant_of.clear();
    }
    for (size_t v = 1; v < wanted.size(); ++v) {
      more.push_back(variant_beside(before, wanted[v]));
      more.back().variant_of = device.name;
    }
    builder.add_device(std::move(device));
  }
  const std::vector<NodeId> node = builder.add_nodes_of(cluster);
  for (Device& device : more) builder.add_device(std::move(device));
  for (const Bus& bus : cluster.buses()) builder.add_bus(bus);
  for (Link link : cluster.links()) {
    link.a = node[link.a.index()];
    link.b = node[link.b.index()];
    builder.add_link(std::move(link));
  }
  return builder.build();
}

std::string hardware_name(const std::string& name) {
  std::string text = name;
  for (size_t at; (at = text.rfind('+')) != std::string::npos && at > 0; text.resize(at)) {
    const auto end = std::string_view(text).substr(at + 1);
    if (!is_engine(end) && !precision_from_name(end)) break;
  }
  return text;
}

Precision precision_in_name(const std::string& name) {
  const size_t plus = name.rfind('+');
  const auto precision =
      plus == std::string::npos ? std::nullopt : precision_from_name(name.substr(plus + 1));
  return precision.value_or(Precision::kF32);
}

std::optional<Device> device_or_variant(const Cluster& cluster, const std::string& name) {
  if (const DeviceId id = cluster.find_device(name); id.valid()) return cluster.device(id);
  const DeviceId id = cluster.find_device(hardware_name(name));
  if (!id.valid()) return std::nullopt;
  Variant variant = variant_of(cluster.device(id));
  std::string_view rest = std::string_view(name).substr(cluster.device(id).name.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('+', 1), rest.size());
    const auto part = rest.substr(1, end - 1);
    if (const auto precision = precision_from_name(part))
      variant.precision = *precision;
    else
      variant.backend = part;
    rest.remove_prefix(end);
  }
  return variant_beside(cluster.device(id), variant);
}

}  // namespace heddle
