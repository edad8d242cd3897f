// A machine's GPUs and their interconnect as a driver reports them, and their conversion to a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/ids.h"

namespace heddle {

class ClusterBuilder;

struct GpuInfo {
  int index = 0;                  // CUDA's index: backend_device "cuda:INDEX"
  std::string name;               // "NVIDIA H200"
  int64_t memory_bytes = 0;       // 0: unknown
  double flops = 0;               // float32 per second; 0: unknown
  double memory_bytes_per_s = 0;  // 0: unknown
  double pcie_bytes_per_s = 0;    // one direction, between GPU and host; 0: unknown
  int copy_engines = 2;
  // Identifies the host port that the GPU's PCIe path shares with other GPUs: equal for GPUs behind one port.
  // Empty: unknown, treated as not shared.
  std::string port;
  double port_bytes_per_s = 0;  // one direction; 0: as fast as its fastest GPU
};

// Two GPUs that copy directly from each other's memory, not through the host.
struct GpuPeers {
  int a = 0, b = 0;        // GpuInfo::index
  double bytes_per_s = 0;  // each direction
  bool by_port = false;    // over PCIe within their common port; else over links of their own
};

struct GpuTopology {
  std::vector<GpuInfo> gpus;
  std::vector<GpuPeers> peers;
};

// Adds devices gpu0, gpu1, ... of backend torch, a link to host memory for each, a bus for each port with
// several GPUs, and a link for each pair of peers. Unknown PCIe rates default to `otherwise_bytes_per_s`.
void add_gpus(ClusterBuilder& builder, HostId host, const GpuTopology& topology,
              double otherwise_bytes_per_s);

}  // namespace heddle
