#include <algorithm>
#include <map>

#include "heddle/cluster/cluster.h"
#include "heddle/cluster/gpu_topology.h"

namespace heddle {
namespace {

// The values of the papers' machines (docs/cluster-format.md).
constexpr double kFoundPcieLatencyUs = 10, kPeerLatencyUs = 5, kGpuLaunchUs = 5;

}  // namespace

void add_gpus(ClusterBuilder& builder, HostId host, const GpuTopology& topology,
              double otherwise_bytes_per_s) {
  const auto pcie_of = [&](const GpuInfo& gpu) {
    return gpu.pcie_bytes_per_s > 0 ? gpu.pcie_bytes_per_s : otherwise_bytes_per_s;
  };
  struct PciePort {
    int gpus = 0;
    double bytes_per_s = 0;
    BusId bus;
  };
  std::map<std::string, PciePort> ports;
  for (const GpuInfo& gpu : topology.gpus) {
    if (gpu.port.empty()) continue;
    PciePort& port = ports[gpu.port];
    ++port.gpus;
    port.bytes_per_s =
        std::max(port.bytes_per_s, gpu.port_bytes_per_s > 0 ? gpu.port_bytes_per_s : pcie_of(gpu));
  }
  int number = 0;
  for (auto& [name, port] : ports) {
    if (port.gpus < 2) continue;
    port.bus = builder.add_bus({.name = "pcie" + std::to_string(number++),
                                .bytes_per_s = port.bytes_per_s,
                                .duplex = Duplex::kFull});
  }
  const auto bus_of = [&](const GpuInfo& gpu) { return gpu.port.empty() ? BusId() : ports.at(gpu.port).bus; };
  std::map<int, std::pair<DeviceId, const GpuInfo*>> by_index;
  for (const GpuInfo& gpu : topology.gpus) {
    Device d;
    d.name = "gpu" + std::to_string(gpu.index);
    d.kind = DeviceKind::kGpu;
    d.device_class = gpu.name;
    d.host = host;
    d.memory_bytes = gpu.memory_bytes;
    d.peak_flops = gpu.flops;
    d.memory_bytes_per_s = gpu.memory_bytes_per_s;
    d.op_overhead_us = kGpuLaunchUs;
    d.copy_engines = std::clamp(gpu.copy_engines, 0, 2);
    d.backend = "torch";
    d.backend_device = "cuda:" + std::to_string(gpu.index);
    d.target = "torch:cuda:" + gpu.name;
    const DeviceId id = builder.add_device(std::move(d));
    by_index[gpu.index] = {id, &gpu};
    builder.add_link({.a = builder.host_node(host),
                      .b = builder.device_node(id),
                      .bytes_per_s = pcie_of(gpu),
                      .latency_us = kFoundPcieLatencyUs,
                      .bus = bus_of(gpu)});
  }
  for (const GpuPeers& peers : topology.peers) {
    const auto a = by_index.find(peers.a), b = by_index.find(peers.b);
    if (a == by_index.end() || b == by_index.end() || !(peers.bytes_per_s > 0)) continue;
    builder.add_link({.a = builder.device_node(a->second.first),
                      .b = builder.device_node(b->second.first),
                      .bytes_per_s = peers.bytes_per_s,
                      .latency_us = kPeerLatencyUs,
                      .bus = peers.by_port ? bus_of(*a->second.second) : BusId()});
  }
}

}  // namespace heddle
