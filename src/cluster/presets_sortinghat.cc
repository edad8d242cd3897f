// SortingHat (ICS 2025): the servers of Table 2 and Figure 8, section 6's p4d.24xlarge. GPU numbers as there.
#include <array>

#include "presets.h"

namespace heddle {
namespace {

// Table 2: "2-ways x2 (GPU1-GPU4, GPU2-GPU3), 1-way x4 (others)"; one way is one NVLink. Section 2.2: GPU1
// and GPU2 share a PCIe bus (the link at the CPU), GPU1 and GPU3 do not.
ClusterResult build_v100(const std::string& name, const std::array<CatalogueDevice, 4>& models,
                         const std::array<double, 4>& speed) {
  ClusterBuilder b(name);
  const HostId host = b.add_host({.name = "server", .memory_bytes = 256 * kGiB});
  const BusId buses[2] = {b.add_bus({.name = "pcie1", .bytes_per_s = kPcie3Rate, .duplex = Duplex::kFull}),
                          b.add_bus({.name = "pcie2", .bytes_per_s = kPcie3Rate, .duplex = Duplex::kFull})};
  std::array<DeviceId, 4> gpu;
  for (size_t i = 0; i < gpu.size(); ++i) {
    Device d = make_device(models[i], "gpu" + std::to_string(i + 1), host);
    d.speed = speed[i];
    d.copy_engines = 0;  // NVLink and PCIe copies run at once (section 3.2: P2P and H2D streams)
    gpu[i] = b.add_device(std::move(d));
  }
  for (size_t i = 0; i < gpu.size(); ++i) add_pcie(b, gpu[i], host, kPcie3Rate, buses[i / 2]);
  for (size_t i = 0; i < gpu.size(); ++i) {
    for (size_t j = i + 1; j < gpu.size(); ++j) {
      const bool two_ways = i + j == 3;  // (1,4) and (2,3)
      add_nvlink(b, gpu[i], gpu[j], (two_ways ? 2 : 1) * kNvLink2Rate);
    }
  }
  return b.build();
}

ClusterResult v100() { return build_v100("v100", {kV100, kV100, kV100, kV100}, {1, 1, 1, 1}); }

// Section 4.1: GPU1 and GPU4 run at 1500 MHz, GPU2 and GPU3 at 135 MHz. 5,120 cores do 2 FLOP per cycle. The
// slow ones are slower in all, as the paper intends ("an overall performance similar to GPUs with fewer
// SMs").
ClusterResult v100_hetero() {
  CatalogueDevice fast = kV100;
  fast.name = "V100-1500MHz";
  fast.f32_flops = 5120 * 2 * 1500e6;
  CatalogueDevice slow = fast;
  slow.name = "V100-135MHz";
  constexpr double kSlow = 135.0 / 1500.0;
  return build_v100("v100-hetero", {fast, slow, slow, fast}, {1, kSlow, kSlow, 1});
}

// Table 2: three RTX A6000, PCIe gen 4, "4-ways x1 (GPU2-GPU3)"; GPU1 reaches the others over PCIe
// (section 3.4).
ClusterResult a6000() {
  ClusterBuilder b("a6000");
  const HostId host = b.add_host({.name = "server", .memory_bytes = 128 * kGiB});
  std::array<DeviceId, 3> gpu;
  for (size_t i = 0; i < gpu.size(); ++i) {
    Device d = make_device(kA6000, "gpu" + std::to_string(i + 1), host);
    d.copy_engines = 0;  // as in build_v100()
    gpu[i] = b.add_device(std::move(d));
  }
  for (DeviceId g : gpu) add_pcie(b, g, host, kPcie4Rate);
  add_nvlink(b, gpu[1], gpu[2], kNvBridgeRate);
  return b.build();
}

// Section 6: eight A100 joined by NVSwitch, four PCIe buses to DRAM. AWS: 1,152 GiB, 600 GB/s NVSwitch per
// GPU (both directions together), CPUs of a generation with PCIe gen 3.
ClusterResult p4d() {
  ClusterBuilder b("p4d");
  const HostId host = b.add_host({.name = "server", .memory_bytes = 1152 * kGiB});
  const NodeId nvswitch = b.add_switch("nvswitch");
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i + 1);
    const DeviceId gpu = b.add_device(make_device(kA100, "gpu" + number, host));
    const BusId bus = i % 2 == 0 ? b.add_bus({.name = "pcie" + std::to_string(i / 2 + 1),
                                              .bytes_per_s = kPcie3Rate,
                                              .duplex = Duplex::kFull})
                                 : BusId(i / 2);
    add_pcie(b, gpu, host, kPcie3Rate, bus);
    b.add_link(
        {.a = b.device_node(gpu), .b = nvswitch, .bytes_per_s = 300e9, .latency_us = kNvLinkLatencyUs / 2});
  }
  return b.build();
}

}  // namespace

void add_sortinghat_presets(std::vector<PresetEntry>& into) {
  into.push_back({{"v100", "4 V100 32 GB, 2 PCIe 3 buses shared by pairs, NVLink 50 and 25 GB/s",
                   "SortingHat, Table 2, Fig. 8(a)"},
                  v100});
  into.push_back({{"v100-hetero", "the v100 server with GPU2 and GPU3 at 135 MHz instead of 1500",
                   "SortingHat, Table 2, Fig. 8(b), section 4.1"},
                  v100_hetero});
  into.push_back({{"a6000", "3 RTX A6000 48 GB on PCIe 4, NVLink bridge between GPU2 and GPU3",
                   "SortingHat, Table 2, Fig. 8(c)"},
                  a6000});
  into.push_back(
      {{"p4d", "AWS p4d.24xlarge: 8 A100 40 GB on NVSwitch, 4 PCIe buses", "SortingHat, section 6"}, p4d});
}

}  // namespace heddle
