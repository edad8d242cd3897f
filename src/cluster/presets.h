// The papers' machines: shared parts, and one registering function per paper.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "catalogue_table.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cluster/cluster_yaml.h"

namespace heddle {

using ClusterResult = Result<std::shared_ptr<const Cluster>>;

struct PresetEntry {
  Preset info;
  std::function<ClusterResult()> build;
};

inline constexpr int64_t kGB = 1'000'000'000;
inline constexpr CatalogueDevice kV100 = catalogue_device("V100");
// Google Cloud's has 16 GB.
inline constexpr CatalogueDevice kV100Cloud = [] {
  CatalogueDevice device = catalogue_device("V100-16GB");
  device.name = "V100";
  return device;
}();
inline constexpr CatalogueDevice kV100S = catalogue_device("V100S");
inline constexpr CatalogueDevice kA100 = catalogue_device("A100");
inline constexpr CatalogueDevice kA6000 = catalogue_device("A6000");
inline constexpr CatalogueDevice kA40 = catalogue_device("A40");
inline constexpr CatalogueDevice kA5500 = catalogue_device("A5500");
inline constexpr CatalogueDevice kT4 = catalogue_device("T4");
inline constexpr CatalogueDevice kP4 = catalogue_device("P4");
inline constexpr CatalogueDevice kL4 = catalogue_device("L4");
inline constexpr CatalogueDevice kRtx2080Ti = catalogue_device("RTX2080Ti");
inline constexpr CatalogueDevice kRtx3060Ti = catalogue_device("RTX3060Ti");
inline constexpr CatalogueDevice kP100 = catalogue_device("P100");

// NVIDIA: an NVLink 2 link (V100) carries 25 GB/s each way; the bridge of RTX A6000, A5500 and A40 has four
// links of 14.0625 GB/s.
inline constexpr double kNvLink2Rate = 25e9;
inline constexpr double kNvBridgeRate = 4 * 14.0625e9;

// The papers give no latencies. These are the rounded costs of one asynchronous copy with
// current drivers; they matter only for messages below about 100 KB.
inline constexpr double kPcieLatencyUs = 10;
inline constexpr double kNvLinkLatencyUs = 5;

// A full-duplex link between a device and its host's memory.
LinkId add_pcie(ClusterBuilder& b, DeviceId device, HostId host, double rate, BusId bus = {});
LinkId add_nvlink(ClusterBuilder& b, DeviceId from, DeviceId to, double rate);

void add_sortinghat_presets(std::vector<PresetEntry>& into);
void add_hios_presets(std::vector<PresetEntry>& into);
void add_moirai_presets(std::vector<PresetEntry>& into);
void add_diviml_presets(std::vector<PresetEntry>& into);
void add_ppipe_presets(std::vector<PresetEntry>& into);

// HIOS's simulated machine; `num_gpus` in [kHiosSimMin, kHiosSimMax].
ClusterResult hios_sim(int num_gpus);
inline constexpr int kHiosSimMin = 1, kHiosSimMax = 64;

}  // namespace heddle
