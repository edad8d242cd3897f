// The catalogue's rows. The GB of GPU memory in datasheets are GiB.
#pragma once

#include <array>
#include <string_view>

#include "heddle/cluster/catalogue.h"

namespace heddle {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// PCI-SIG: 16 lanes of 8, 16 or 32 GT/s with 128b/130b coding, each direction.
inline constexpr double kPcie3Rate = 16 * 8e9 * 128 / 130 / 8;
inline constexpr double kPcie4Rate = 16 * 16e9 * 128 / 130 / 8;
inline constexpr double kPcie5Rate = 16 * 32e9 * 128 / 130 / 8;

// The rounded cost of one kernel launch with current drivers, and of one segment on CPU cores.
inline constexpr double kLaunchUs = 5;

inline constexpr auto kGpu = DeviceKind::kGpu;
inline constexpr auto kCpu = DeviceKind::kCpu;

// A CPU socket: FLOP per second of all cores at the base clock, which the vendor guarantees. One fused multiply-add
// counts as two.
constexpr double socket_rate(int cores, double base_hz, double per_cycle_and_core) {
  return cores * base_hz * per_cycle_and_core;
}
// Float32 operations per cycle of a core: two 512-bit units (AVX-512 of Xeon), two 256-bit units (AVX2 of EPYC Milan),
// and the same throughput in EPYC Genoa, which runs a 512-bit operation in two halves.
inline constexpr double kTwo512 = 2 * 16 * 2, kTwo256 = 2 * 8 * 2;
// AMX: a tile product of 16 x 16 x 32 bf16 values takes 16 cycles; int8 has twice as many values.
inline constexpr double kAmxBf16 = 16 * 16 * 32 * 2 / 16.0, kAmxInt8 = 2 * kAmxBf16;

// Channels of DDR memory, 8 bytes wide each.
constexpr double ddr(int channels, double transfers_per_s) { return channels * transfers_per_s * 8; }

// GeForce cards sum half-precision products in float32 at half the rate of the professional ones.
inline constexpr std::array kCatalogue = std::to_array<CatalogueDevice>({
    {"P4", kGpu, 8 * kGiB, 192e9, kPcie3Rate, 5.5e12, 0, 0, 0, 22e12, "NVIDIA Tesla P4 datasheet"},
    {"P100", kGpu, 16 * kGiB, 732e9, kPcie3Rate, 10.6e12, 0, 0, 0, 0, "NVIDIA Tesla P100 datasheet, SXM2"},
    {"V100", kGpu, 32 * kGiB, 900e9, kPcie3Rate, 15.7e12, 0, 0, 125e12, 0, "NVIDIA V100 datasheet, SXM2"},
    {"V100-16GB", kGpu, 16 * kGiB, 900e9, kPcie3Rate, 15.7e12, 0, 0, 125e12, 0,
     "NVIDIA V100 datasheet, SXM2"},
    {"V100S", kGpu, 32 * kGiB, 1134e9, kPcie3Rate, 16.4e12, 0, 0, 130e12, 0, "NVIDIA V100 datasheet, V100S"},
    {"T4", kGpu, 16 * kGiB, 320e9, kPcie3Rate, 8.1e12, 0, 0, 65e12, 130e12, "NVIDIA T4 datasheet"},
    {"L4", kGpu, 24 * kGiB, 300e9, kPcie4Rate, 30.3e12, 60e12, 121e12, 121e12, 242e12, "NVIDIA L4 datasheet"},
    {"A10", kGpu, 24 * kGiB, 600e9, kPcie4Rate, 31.2e12, 62.5e12, 125e12, 125e12, 250e12,
     "NVIDIA A10 datasheet"},
    {"A40", kGpu, 48 * kGiB, 696e9, kPcie4Rate, 37.4e12, 74.8e12, 149.7e12, 149.7e12, 299.3e12,
     "NVIDIA A40 datasheet"},
    {"A5500", kGpu, 24 * kGiB, 768e9, kPcie4Rate, 34.1e12, 68.2e12, 136.4e12, 136.4e12, 272.8e12,
     "NVIDIA RTX A5500 datasheet"},
    {"A6000", kGpu, 48 * kGiB, 768e9, kPcie4Rate, 38.7e12, 77.4e12, 154.8e12, 154.8e12, 309.7e12,
     "NVIDIA RTX A6000 datasheet"},
    {"A100", kGpu, 40 * kGiB, 1555e9, kPcie4Rate, 19.5e12, 156e12, 312e12, 312e12, 624e12,
     "NVIDIA A100 datasheet, 40 GB"},
    {"A100-80GB", kGpu, 80 * kGiB, 2039e9, kPcie4Rate, 19.5e12, 156e12, 312e12, 312e12, 624e12,
     "NVIDIA A100 datasheet, 80 GB SXM"},
    {"H100", kGpu, 80 * kGiB, 3350e9, kPcie5Rate, 67e12, 494.7e12, 989.4e12, 989.4e12, 1978.9e12,
     "NVIDIA H100 datasheet, SXM"},
    {"H100-PCIe", kGpu, 80 * kGiB, 2000e9, kPcie5Rate, 51e12, 378e12, 756e12, 756e12, 1513e12,
     "NVIDIA H100 datasheet, PCIe"},
    {"H200", kGpu, 141 * kGiB, 4800e9, kPcie5Rate, 67e12, 494.7e12, 989.4e12, 989.4e12, 1978.9e12,
     "NVIDIA H200 datasheet, SXM"},
    {"RTX2080Ti", kGpu, 11 * kGiB, 616e9, kPcie3Rate, 13.4e12, 0, 0, 53.8e12, 215.2e12,
     "NVIDIA Turing architecture whitepaper"},
    {"RTX3060", kGpu, 12 * kGiB, 360e9, kPcie4Rate, 12.7e12, 12.7e12, 25.5e12, 25.5e12, 102e12,
     "NVIDIA product page; tensor cores as in the Ampere GA102 whitepaper"},
    {"RTX3060Ti", kGpu, 8 * kGiB, 448e9, kPcie4Rate, 16.2e12, 16.2e12, 32.4e12, 32.4e12, 129.6e12,
     "NVIDIA product page; tensor cores as in the Ampere GA102 whitepaper"},
    {"RTX3070", kGpu, 8 * kGiB, 448e9, kPcie4Rate, 20.3e12, 20.3e12, 40.6e12, 40.6e12, 162.6e12,
     "NVIDIA Ampere GA102 whitepaper"},
    {"RTX3070Ti", kGpu, 8 * kGiB, 608e9, kPcie4Rate, 21.7e12, 21.7e12, 43.4e12, 43.4e12, 173.6e12,
     "NVIDIA product page; tensor cores as in the Ampere GA102 whitepaper"},
    {"RTX3080", kGpu, 10 * kGiB, 760e9, kPcie4Rate, 29.8e12, 29.8e12, 59.5e12, 59.5e12, 238e12,
     "NVIDIA Ampere GA102 whitepaper"},
    {"RTX3080Ti", kGpu, 12 * kGiB, 912e9, kPcie4Rate, 34.1e12, 34.1e12, 68.2e12, 68.2e12, 272.8e12,
     "NVIDIA product page; tensor cores as in the Ampere GA102 whitepaper"},
    {"RTX3090", kGpu, 24 * kGiB, 936e9, kPcie4Rate, 35.6e12, 35.6e12, 71e12, 71e12, 284e12,
     "NVIDIA Ampere GA102 whitepaper"},
    {"RTX3090Ti", kGpu, 24 * kGiB, 1008e9, kPcie4Rate, 40.0e12, 40e12, 80e12, 80e12, 320e12,
     "NVIDIA product page; tensor cores as in the Ampere GA102 whitepaper"},
    {"RTX4060", kGpu, 8 * kGiB, 272e9, kPcie4Rate / 2, 15.1e12, 15.1e12, 30.2e12, 30.2e12, 120.8e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper; 8 lanes"},
    {"RTX4060Ti", kGpu, 8 * kGiB, 288e9, kPcie4Rate / 2, 22.1e12, 22.1e12, 44.1e12, 44.1e12, 176.5e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper; 8 lanes"},
    {"RTX4070", kGpu, 12 * kGiB, 504e9, kPcie4Rate, 29.1e12, 29.1e12, 58.3e12, 58.3e12, 233.2e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper"},
    {"RTX4070S", kGpu, 12 * kGiB, 504e9, kPcie4Rate, 35.5e12, 35.5e12, 71e12, 71e12, 284e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper"},
    {"RTX4070Ti", kGpu, 12 * kGiB, 504e9, kPcie4Rate, 40.1e12, 40.1e12, 80.2e12, 80.2e12, 320.8e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper"},
    {"RTX4070TiS", kGpu, 16 * kGiB, 672e9, kPcie4Rate, 44.1e12, 44.1e12, 88.2e12, 88.2e12, 352.8e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper"},
    {"RTX4080", kGpu, 16 * kGiB, 716.8e9, kPcie4Rate, 48.7e12, 48.7e12, 97.5e12, 97.5e12, 389.9e12,
     "NVIDIA Ada architecture whitepaper"},
    {"RTX4080S", kGpu, 16 * kGiB, 736e9, kPcie4Rate, 52.2e12, 52.2e12, 104.4e12, 104.4e12, 417.6e12,
     "NVIDIA product page; tensor cores as in the Ada whitepaper"},
    {"RTX4090", kGpu, 24 * kGiB, 1008e9, kPcie4Rate, 82.6e12, 82.6e12, 165.2e12, 165.2e12, 660.6e12,
     "NVIDIA Ada architecture whitepaper"},
    {"RTX5060", kGpu, 8 * kGiB, 448e9, kPcie5Rate / 2, 19.2e12, 19.2e12, 38.4e12, 38.4e12, 153.6e12,
     "NVIDIA product page; tensor cores as in the RTX Blackwell whitepaper; 8 lanes"},
    {"RTX5060Ti", kGpu, 16 * kGiB, 448e9, kPcie5Rate / 2, 23.7e12, 23.7e12, 47.4e12, 47.4e12, 189.6e12,
     "NVIDIA product page; tensor cores as in the RTX Blackwell whitepaper; 8 lanes"},
    {"RTX5070", kGpu, 12 * kGiB, 672e9, kPcie5Rate, 30.9e12, 30.9e12, 61.7e12, 61.7e12, 246.9e12,
     "NVIDIA RTX Blackwell whitepaper"},
    {"RTX5070Ti", kGpu, 16 * kGiB, 896e9, kPcie5Rate, 43.9e12, 43.9e12, 87.8e12, 87.8e12, 351.2e12,
     "NVIDIA product page; tensor cores as in the RTX Blackwell whitepaper"},
    {"RTX5080", kGpu, 16 * kGiB, 960e9, kPcie5Rate, 56.3e12, 56.3e12, 112.6e12, 112.6e12, 450.2e12,
     "NVIDIA RTX Blackwell whitepaper"},
    {"RTX5090", kGpu, 32 * kGiB, 1792e9, kPcie5Rate, 104.8e12, 104.8e12, 209.5e12, 209.5e12, 838e12,
     "NVIDIA RTX Blackwell whitepaper"},
    {"Xeon-8380", kCpu, 0, ddr(8, 3200e6), 0, socket_rate(40, 2.3e9, kTwo512), 0, 0, 0,
     socket_rate(40, 2.3e9, 4 * kTwo512),
     "Intel ARK, Xeon Platinum 8380: 40 cores x 2.3 GHz x AVX-512, VNNI"},
    {"Xeon-8480", kCpu, 0, ddr(8, 4800e6), 0, socket_rate(56, 2.0e9, kTwo512), 0,
     socket_rate(56, 2.0e9, kAmxBf16), 0, socket_rate(56, 2.0e9, kAmxInt8),
     "Intel ARK, Xeon Platinum 8480+: 56 cores x 2.0 GHz x AVX-512, AMX"},
    {"Xeon-6980P", kCpu, 0, ddr(12, 8800e6), 0, socket_rate(128, 2.0e9, kTwo512), 0,
     socket_rate(128, 2.0e9, kAmxBf16), socket_rate(128, 2.0e9, kAmxBf16), socket_rate(128, 2.0e9, kAmxInt8),
     "Intel ARK, Xeon 6980P with MRDIMM: 128 cores x 2.0 GHz x AVX-512, AMX"},
    {"EPYC-7763", kCpu, 0, ddr(8, 3200e6), 0, socket_rate(64, 2.45e9, kTwo256), 0, 0, 0, 0,
     "AMD EPYC 7763 (Milan) product page: 64 cores x 2.45 GHz x AVX2"},
    {"EPYC-9654", kCpu, 0, ddr(12, 4800e6), 0, socket_rate(96, 2.4e9, kTwo256), 0,
     socket_rate(96, 2.4e9, 2 * kTwo256), 0, socket_rate(96, 2.4e9, 4 * kTwo256),
     "AMD EPYC 9654 (Genoa) product page: 96 cores x 2.4 GHz x AVX-512 in halves, BF16, VNNI"},
    {"IrisXe-96", kGpu, 0, 68.3e9, 68.3e9, 96 * 16 * 1.3e9, 0, 0, 96 * 32 * 1.3e9, 96 * 64 * 1.3e9,
     "Intel ARK, Iris Xe of Core i7-1165G7: 96 EU x 16 FLOP x 1.3 GHz; LPDDR4x-4266, 128 bit, shared with "
     "the CPU"},
    {"Arc-140V", kGpu, 0, 136.5e9, 136.5e9, 8 * 256 * 1.95e9, 0, 8 * 2048 * 1.95e9, 8 * 2048 * 1.95e9,
     8 * 4096 * 1.95e9,
     "Intel ARK, Arc 140V of Core Ultra 7 258V: 8 Xe2 cores x 256 FLOP x 1.95 GHz, XMX; LPDDR5x-8533, shared "
     "with the CPU"},
    {"Radeon-780M", kGpu, 0, 89.6e9, 89.6e9, 12 * 128 * 2.7e9, 0, 0, 12 * 256 * 2.7e9, 0,
     "AMD Ryzen 7 7840U product page: 12 CU x 128 FLOP x 2.7 GHz without dual issue; DDR5-5600, 128 bit, "
     "shared with the CPU"},
});

constexpr const CatalogueDevice* catalogue_row(std::string_view name) {
  for (const CatalogueDevice& device : kCatalogue)
    if (name == device.name) return &device;
  return nullptr;
}
// A name that is not there does not compile.
consteval CatalogueDevice catalogue_device(std::string_view name) { return *catalogue_row(name); }

}  // namespace heddle
