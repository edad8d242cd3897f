#include "presets.h"

#include "heddle/base/file.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/discover.h"

namespace heddle {
namespace {

constexpr std::string_view kPrefix = "preset:";
constexpr std::string_view kHiosSimPrefix = "hios-sim-";
constexpr int64_t kMaxClusterFileBytes = int64_t{16} << 20;

const std::vector<PresetEntry>& preset_table() {
  static const std::vector<PresetEntry> table = [] {
    std::vector<PresetEntry> t;
    t.push_back({{"local", "this machine: its CPU's core sets, with measured rates", "measured"},
                 [] { return discover_local(); }});
    add_sortinghat_presets(t);
    add_hios_presets(t);
    add_moirai_presets(t);
    add_diviml_presets(t);
    add_ppipe_presets(t);
    return t;
  }();
  return table;
}

ClusterResult load_hios_sim(std::string_view name) {
  const std::string_view digits = name.substr(kHiosSimPrefix.size());
  const auto n = parse_number<int>(digits);
  if (n && *n >= kHiosSimMin && *n <= kHiosSimMax) return hios_sim(*n);
  return not_found("no preset is named '" + std::string(name) + "'; hios-sim-N takes N from " +
                   std::to_string(kHiosSimMin) + " to " + std::to_string(kHiosSimMax));
}

ClusterResult load_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const PresetEntry& entry : preset_table()) {
    if (entry.info.name == name) return entry.build();
    names.push_back(entry.info.name);
  }
  if (name.starts_with(kHiosSimPrefix)) return load_hios_sim(name);
  const std::string hint = name.size() > 64 ? "" : did_you_mean(name, names);
  return not_found("no preset is named '" + std::string(name.substr(0, 64)) + "'" + hint +
                   "; 'heddle devices --presets' lists them");
}

}  // namespace

LinkId add_pcie(ClusterBuilder& b, DeviceId device, HostId host, double rate, BusId bus) {
  return b.add_link({.a = b.host_node(host),
                     .b = b.device_node(device),
                     .bytes_per_s = rate,
                     .latency_us = kPcieLatencyUs,
                     .bus = bus});
}

LinkId add_nvlink(ClusterBuilder& b, DeviceId from, DeviceId to, double rate) {
  return b.add_link({.a = b.device_node(from),
                     .b = b.device_node(to),
                     .bytes_per_s = rate,
                     .latency_us = kNvLinkLatencyUs});
}

std::vector<Preset> cluster_presets() {
  std::vector<Preset> presets;
  for (const PresetEntry& entry : preset_table()) presets.push_back(entry.info);
  return presets;
}

ClusterResult load_cluster(const std::string& file_or_preset) {
  if (file_or_preset.starts_with(kPrefix))
    return load_preset(std::string_view(file_or_preset).substr(kPrefix.size()));
  auto text = read_file(file_or_preset, kMaxClusterFileBytes);
  if (!text.ok()) {
    // The most likely mistake is a preset's name without its prefix.
    for (const PresetEntry& entry : preset_table()) {
      if (entry.info.name != file_or_preset || text.error().code() != Code::kNotFound) continue;
      return not_found("no file is named '" + file_or_preset + "'; the preset is 'preset:" + file_or_preset +
                       "'");
    }
    return std::move(text).error();
  }
  return parse_cluster_yaml(*text, file_or_preset);
}

}  // namespace heddle
