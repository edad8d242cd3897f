// Writes clusters: for people with units, inside plan files in base units. A unit is used only if reading it back
// gives the same bits.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/yaml_json.h"
#include "names.h"

namespace heddle {
namespace {

Json bytes_with_unit(int64_t bytes) {
  struct Unit {
    int64_t size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{int64_t{1} << 30, "GiB"},
                                    {1'000'000'000, "GB"},
                                    {int64_t{1} << 20, "MiB"},
                                    {1'000'000, "MB"},
                                    {1 << 10, "KiB"}};
  for (const Unit& u : kUnits) {
    if (bytes % u.size == 0) return fmt::format("{}{}", bytes / u.size, u.name);
  }
  return bytes;
}

template <class Parse>
Json rate_with_unit(double value, double scale, const char* unit, Parse parse) {
  const std::string text = fmt::format("{}{}", value / scale, unit);
  return text.find('e') == std::string::npos && parse(text) == value ? Json(text) : Json(value);
}

class ClusterWriter {
 public:
  ClusterWriter(const Cluster& cluster, bool with_units) : cluster_(cluster), with_units_(with_units) {}

  Json write() const {
    Json json = {{"name", cluster_.name()}};
    for (const Host& h : cluster_.hosts()) {
      Json& host = json["hosts"].emplace_back(Json{{"name", h.name}});
      put_bytes(host, h.memory_bytes);
    }
    for (const Device& d : cluster_.devices()) json["devices"].push_back(device(d));
    for (const Node& n : cluster_.nodes()) {
      if (n.kind == Node::Kind::kSwitch) json["switches"].push_back(n.name);
    }
    for (const Bus& b : cluster_.buses()) {
      Json& bus = json["buses"].emplace_back(Json{{"name", b.name}});
      if (b.bytes_per_s > 0) put_bandwidth(bus, "bandwidth", "bytes_per_s", b.bytes_per_s);
      bus["duplex"] = duplex_name(b.duplex);
    }
    for (const Link& l : cluster_.links()) json["links"].push_back(link(l));
    // A missing list would give each card of the catalogue a link.
    if (cluster_.links().empty() && std::ranges::any_of(cluster_.devices(), is_card))
      json["links"] = Json::array();
    return json;
  }

 private:
  // What is missing of it stands in the catalogue.
  static bool is_card(const Device& d) { return find_in_catalogue(d.device_class) != nullptr; }

  // What a variant has from its physical device is left out.
  Json variant(const Device& d) const {
    const Device& base = cluster_.device(cluster_.find_device(d.variant_of));
    Json j = {{"name", d.name}, {"variant_of", d.variant_of}, {"class", d.device_class}};
    if (d.peak_flops != base.peak_flops) put_flops(j, d.peak_flops);
    if (d.memory_bytes_per_s != base.memory_bytes_per_s)
      put_bandwidth(j, "memory_bandwidth", "memory_bytes_per_s", d.memory_bytes_per_s);
    if (d.op_overhead_us != base.op_overhead_us)
      put_time(j, "op_overhead", "op_overhead_us", d.op_overhead_us);
    if (d.speed != base.speed) j["speed"] = d.speed;
    j["backend"] = d.backend;
    if (!d.backend_device.empty()) j["backend_device"] = d.backend_device;
    j["precision"] = precision_name(d.precision);
    if (!d.target.empty()) j["target"] = d.target;
    return j;
  }

  Json device(const Device& d) const {
    if (!d.variant_of.empty()) return variant(d);
    Json j = {{"name", d.name},
              {"kind", device_kind_name(d.kind)},
              {"class", d.device_class},
              {"host", cluster_.host(d.host).name}};
    const bool all = is_card(d);
    put_bytes(j, d.memory_bytes, all);
    if (all || d.peak_flops > 0) put_flops(j, d.peak_flops);
    if (all || d.memory_bytes_per_s > 0)
      put_bandwidth(j, "memory_bandwidth", "memory_bytes_per_s", d.memory_bytes_per_s);
    if (all || d.op_overhead_us > 0) put_time(j, "op_overhead", "op_overhead_us", d.op_overhead_us);
    if (d.speed != 1) j["speed"] = d.speed;
    if (!d.cores.empty()) j["cores"] = with_units_ ? Json(core_ranges(d.cores, ',')) : Json(d.cores);
    if (d.copy_engines != 2) j["copy_engines"] = d.copy_engines;
    if (d.backend != "emulated") j["backend"] = d.backend;
    if (!d.backend_device.empty()) j["backend_device"] = d.backend_device;
    if (d.precision != Precision::kF32 || d.fixed_precision) j["precision"] = precision_name(d.precision);
    if (!d.target.empty()) j["target"] = d.target;
    return j;
  }

  Json link(const Link& l) const {
    Json j = {{"name", l.name}, {"from", cluster_.node(l.a).name}, {"to", cluster_.node(l.b).name}};
    put_bandwidth(j, "bandwidth", "bytes_per_s", l.bytes_per_s);
    if (l.latency_us > 0) put_time(j, "latency", "latency_us", l.latency_us);
    if (l.duplex != Duplex::kFull) j["duplex"] = duplex_name(l.duplex);
    if (l.bus.valid()) j["bus"] = cluster_.bus(l.bus).name;
    return j;
  }

  void put_flops(Json& j, double flops) const {
    j["flops"] = with_units_ ? rate_with_unit(flops, 1e12, "TFLOPS", parse_flops) : Json(flops);
  }
  // Writes nothing for 0, which is what a missing member means, except of cards. (A variant's 0 differs from a
  // missing member, which means its device's value, so the others write it.)
  void put_bytes(Json& j, int64_t bytes, bool also_zero = false) const {
    if (bytes == 0 && !also_zero) return;
    if (with_units_)
      j["memory"] = bytes_with_unit(bytes);
    else
      j["memory_bytes"] = bytes;
  }
  void put_bandwidth(Json& j, const char* key, const char* base_key, double value) const {
    if (with_units_)
      j[key] = rate_with_unit(value, 1e9, "GB/s", parse_bandwidth);
    else
      j[base_key] = value;
  }
  void put_time(Json& j, const char* key, const char* base_key, double us) const {
    if (with_units_)
      j[key] = rate_with_unit(us, 1, "us", parse_time_us);
    else
      j[base_key] = us;
  }

  const Cluster& cluster_;
  const bool with_units_;
};

}  // namespace

std::string cluster_to_yaml(const Cluster& cluster) {
  return json_to_yaml(ClusterWriter(cluster, true).write());
}

Json cluster_to_json(const Cluster& cluster) { return ClusterWriter(cluster, false).write(); }

}  // namespace heddle
