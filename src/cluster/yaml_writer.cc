// Writes the format of parse_cluster_yaml() without loss: a unit is used only if reading it back gives the
// same bits.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "spec.h"

namespace heddle {
namespace {

bool is_plain(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kSpecial = {"null", "true", "false", "yes", "no",
                                                               "on",   "off",  "y",     "n"};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::string folded(text);
  std::transform(folded.begin(), folded.end(), folded.begin(), lower);
  if (std::find(kSpecial.begin(), kSpecial.end(), folded) != kSpecial.end()) return false;
  const auto letter = [&](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/';
  };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), inside);
}

// Names hold no control characters (the builder rejects them), so two escapes suffice.
std::string yaml_text(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string bytes_text(int64_t bytes) {
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
    if (bytes > 0 && bytes % u.size == 0) return fmt::format("{}{}", bytes / u.size, u.name);
  }
  return std::to_string(bytes);
}

template <class Parse>
std::string rate_text(double value, double scale, const char* unit, Parse parse) {
  const std::string text = fmt::format("{}{}", value / scale, unit);
  return text.find('e') == std::string::npos && parse(text) == value ? text : fmt::format("{}", value);
}
std::string bandwidth_text(double v) { return rate_text(v, 1e9, "GB/s", parse_bandwidth); }
std::string flops_text(double v) { return rate_text(v, 1e12, "TFLOPS", parse_flops); }
std::string time_text(double v) { return rate_text(v, 1, "us", parse_time_us); }

// "0-3,8": ascending cores as ranges.
std::string cores_text(const std::vector<int>& cores) {
  std::string out;
  for (size_t i = 0; i < cores.size();) {
    size_t j = i;
    while (j + 1 < cores.size() && cores[j + 1] == cores[j] + 1) ++j;
    out += fmt::format("{}{}", out.empty() ? "" : ",", cores[i]);
    if (j > i) out += fmt::format("-{}", cores[j]);
    i = j + 1;
  }
  return out;
}

void write_device(std::string& out, const Cluster& cluster, const Device& d) {
  const auto line = [&](const char* key, const std::string& value) {
    out += fmt::format("    {}: {}\n", key, value);
  };
  out += fmt::format("  - name: {}\n", yaml_text(d.name));
  line("kind", device_kind_name(d.kind));
  line("class", yaml_text(d.device_class));
  line("host", yaml_text(cluster.host(d.host).name));
  if (d.memory_bytes > 0) line("memory", bytes_text(d.memory_bytes));
  if (d.peak_flops > 0) line("flops", flops_text(d.peak_flops));
  if (d.memory_bytes_per_s > 0) line("memory_bandwidth", bandwidth_text(d.memory_bytes_per_s));
  if (d.op_overhead_us > 0) line("op_overhead", time_text(d.op_overhead_us));
  if (d.speed != 1) line("speed", fmt::format("{}", d.speed));
  if (!d.cores.empty()) line("cores", '"' + cores_text(d.cores) + '"');
  if (d.copy_engines != 2) line("copy_engines", std::to_string(d.copy_engines));
  if (d.backend != "emulated") line("backend", yaml_text(d.backend));
  if (!d.backend_device.empty()) line("backend_device", yaml_text(d.backend_device));
  if (!d.target.empty()) line("target", yaml_text(d.target));
}

void write_link(std::string& out, const Cluster& cluster, const Link& l) {
  out += fmt::format("  - {{name: {}, from: {}, to: {}, bandwidth: {}", yaml_text(l.name),
                     yaml_text(cluster.node(l.a).name), yaml_text(cluster.node(l.b).name),
                     bandwidth_text(l.bytes_per_s));
  if (l.latency_us > 0) out += ", latency: " + time_text(l.latency_us);
  if (l.duplex != Duplex::kFull) out += fmt::format(", duplex: {}", duplex_name(l.duplex));
  if (l.bus.valid()) out += ", bus: " + yaml_text(cluster.bus(l.bus).name);
  out += "}\n";
}

}  // namespace

std::string cluster_to_yaml(const Cluster& cluster) {
  std::string out = fmt::format("name: {}\nhosts:\n", yaml_text(cluster.name()));
  for (const Host& h : cluster.hosts()) {
    out += fmt::format("  - name: {}\n", yaml_text(h.name));
    if (h.memory_bytes > 0) out += fmt::format("    memory: {}\n", bytes_text(h.memory_bytes));
  }
  out += "devices:\n";
  for (const Device& d : cluster.devices()) write_device(out, cluster, d);
  const auto is_switch = [](const Node& n) { return n.kind == Node::Kind::kSwitch; };
  if (std::any_of(cluster.nodes().begin(), cluster.nodes().end(), is_switch)) out += "switches:\n";
  for (const Node& n : cluster.nodes()) {
    if (is_switch(n)) out += fmt::format("  - {}\n", yaml_text(n.name));
  }
  if (!cluster.buses().empty()) out += "buses:\n";
  for (const Bus& b : cluster.buses()) {
    out += fmt::format("  - {{name: {}", yaml_text(b.name));
    if (b.bytes_per_s > 0) out += ", bandwidth: " + bandwidth_text(b.bytes_per_s);
    out += fmt::format(", duplex: {}}}\n", duplex_name(b.duplex));
  }
  if (!cluster.links().empty()) out += "links:\n";
  for (const Link& l : cluster.links()) write_link(out, cluster, l);
  return out;
}

}  // namespace heddle
