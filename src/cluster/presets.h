// The papers' machines: shared parts, and one registering function per paper.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cluster/cluster_yaml.h"

namespace heddle {

using ClusterResult = Result<std::shared_ptr<const Cluster>>;

struct PresetEntry {
  Preset info;
  std::function<ClusterResult()> build;
};

// A GPU's datasheet values: float32 rate without tensor cores, memory, memory bandwidth.
struct GpuModel {
  const char* device_class;
  double peak_flops;
  int64_t memory_bytes;
  double memory_bytes_per_s;
};

inline constexpr int64_t kGB = 1'000'000'000;
inline constexpr int64_t kGiB = int64_t{1} << 30;

// NVIDIA's datasheets: Tesla V100 (SXM2, DGX Station: 32 GB; Google Cloud: 16 GB), V100S PCIe, A100 40 GB
// SXM, RTX A6000, A40, RTX A5500, T4, P4, L4, GeForce RTX 2080 Ti, GeForce RTX 3060 Ti, Tesla P100 SXM2 16
// GB. The GB of GPU memory in datasheets are GiB.
inline constexpr GpuModel kV100{"V100", 15.7e12, 32 * kGiB, 900e9};
inline constexpr GpuModel kV100Cloud{"V100", 15.7e12, 16 * kGiB, 900e9};
inline constexpr GpuModel kV100S{"V100S", 16.4e12, 32 * kGiB, 1134e9};
inline constexpr GpuModel kA100{"A100", 19.5e12, 40 * kGiB, 1555e9};
inline constexpr GpuModel kA6000{"A6000", 38.7e12, 48 * kGiB, 768e9};
inline constexpr GpuModel kA40{"A40", 37.4e12, 48 * kGiB, 696e9};
inline constexpr GpuModel kA5500{"A5500", 34.1e12, 24 * kGiB, 768e9};
inline constexpr GpuModel kT4{"T4", 8.1e12, 16 * kGiB, 320e9};
inline constexpr GpuModel kP4{"P4", 5.5e12, 8 * kGiB, 192e9};
inline constexpr GpuModel kL4{"L4", 30.3e12, 24 * kGiB, 300e9};
inline constexpr GpuModel kRtx2080Ti{"RTX2080Ti", 13.4e12, 11 * kGiB, 616e9};
inline constexpr GpuModel kRtx3060Ti{"RTX3060Ti", 16.2e12, 8 * kGiB, 448e9};
inline constexpr GpuModel kP100{"P100", 10.6e12, 16 * kGiB, 732e9};

// PCI-SIG: 16 lanes of 8 or 16 GT/s with 128b/130b coding, each direction.
inline constexpr double kPcie3Rate = 16 * 8e9 * 128 / 130 / 8;
inline constexpr double kPcie4Rate = 16 * 16e9 * 128 / 130 / 8;
// NVIDIA: an NVLink 2 link (V100) carries 25 GB/s each way; the bridge of RTX A6000, A5500 and A40 has four
// links of 14.0625 GB/s.
inline constexpr double kNvLink2Rate = 25e9;
inline constexpr double kNvBridgeRate = 4 * 14.0625e9;

// The papers give no latencies. These are the rounded costs of one asynchronous copy or kernel launch with
// current drivers; they matter only for messages below about 100 KB.
inline constexpr double kPcieLatencyUs = 10;
inline constexpr double kNvLinkLatencyUs = 5;
inline constexpr double kLaunchUs = 5;

Device make_gpu(const GpuModel& model, std::string name, HostId host);
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
