// HIOS (IPDPSW 2024): the three dual-GPU platforms of section II-B (the first also in section VI), and the
// simulated machine of section V.
#include "presets.h"

namespace heddle {
namespace {

// A pair with an NVLink bridge ("bidirectional bandwidth of 112.5 GB/s": 56.25 each way), or with PCIe only.
ClusterResult pair(const std::string& name, const CatalogueDevice& model, int64_t host_bytes,
                   double pcie_rate, bool bridge) {
  ClusterBuilder b(name);
  const HostId host = b.add_host({.name = "server", .memory_bytes = host_bytes});
  const DeviceId first = b.add_device(make_device(model, "gpu1", host));
  const DeviceId second = b.add_device(make_device(model, "gpu2", host));
  add_pcie(b, first, host, pcie_rate);
  add_pcie(b, second, host, pcie_rate);
  if (bridge) add_nvlink(b, first, second, kNvBridgeRate);
  return b.build();
}

// The paper does not state the host memory of the A5500 and V100S machines: unlimited.
ClusterResult a40() { return pair("hios-a40", kA40, 192 * kGiB, kPcie4Rate, true); }
ClusterResult a5500() { return pair("hios-a5500", kA5500, 0, kPcie4Rate, true); }
ClusterResult v100s() { return pair("hios-v100s", kV100S, 0, kPcie3Rate, false); }

}  // namespace

// Section V-A: M equal GPUs, fully connected. Op and transfer times come with the graph (us of transfer =
// bytes / 1e3 at 1 GB/s), so devices have no rates. The paper has no contention: plan with the execution
// model's contention off.
ClusterResult hios_sim(int num_gpus) {
  ClusterBuilder b("hios-sim-" + std::to_string(num_gpus));
  const HostId host = b.add_host({.name = "server"});
  std::vector<DeviceId> gpu;
  for (int i = 0; i < num_gpus; ++i) {
    Device d;
    d.name = "gpu" + std::to_string(i + 1);
    d.device_class = "sim";
    d.host = host;
    d.copy_engines = 0;
    gpu.push_back(b.add_device(std::move(d)));
  }
  for (size_t i = 0; i < gpu.size(); ++i) {
    b.add_link({.a = b.host_node(host), .b = b.device_node(gpu[i]), .bytes_per_s = 1e9});
    for (size_t j = i + 1; j < gpu.size(); ++j) {
      b.add_link({.a = b.device_node(gpu[i]), .b = b.device_node(gpu[j]), .bytes_per_s = 1e9});
    }
  }
  return b.build();
}

void add_hios_presets(std::vector<PresetEntry>& into) {
  into.push_back(
      {{"hios-a40", "2 A40 48 GB with an NVLink bridge (Dell R750XA)", "HIOS, sections II-B and VI-A"}, a40});
  into.push_back({{"hios-a5500", "2 RTX A5500 24 GB with an NVLink bridge", "HIOS, section II-B"}, a5500});
  into.push_back({{"hios-v100s", "2 V100S 32 GB on PCIe 3", "HIOS, section II-B"}, v100s});
  into.push_back(
      {{"hios-sim",
        "4 simulated equal GPUs, 1 GB/s between each two; hios-sim-1 to hios-sim-64 for other numbers",
        "HIOS, section V-A"},
       [] { return hios_sim(4); }});
}

}  // namespace heddle
