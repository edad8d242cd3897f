// What a driver tells of a machine's GPUs and of what joins them, and what becomes of it in a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/ids.h"

namespace heddle {

class ClusterBuilder;

struct GpuInfo {
  int index = 0;                  // as CUDA counts: backend_device "cuda:INDEX"
  std::string name;               // "NVIDIA H200"
  int64_t memory_bytes = 0;       // 0: not known
  double flops = 0;               // float32 per second; 0: not known
  double memory_bytes_per_s = 0;  // 0: not known
  double pcie_bytes_per_s = 0;    // one direction, between it and the host; 0: not known
  int copy_engines = 2;
  // Where its way to the host begins to be shared with others: a name that is the same for GPUs behind one
  // port of the host. Empty: not known, shared with nobody.
  std::string port;
  double port_bytes_per_s = 0;  // one direction; 0: as fast as the fastest GPU behind it
};

// Two GPUs that copy from each other's memory without the host.
struct GpuPeers {
  int a = 0, b = 0;        // GpuInfo::index
  double bytes_per_s = 0;  // each direction
  bool by_port = false;    // over PCIe, by the port that both are behind; else by links of their own
};

struct GpuTopology {
  std::vector<GpuInfo> gpus;
  std::vector<GpuPeers> peers;
};

// Adds devices gpu0, gpu1, ... of the backend torch, a link to the host's memory for each, a bus for ports
// with several GPUs, and a link for peers. What is not known gets what `otherwise_bytes_per_s` says.
void add_gpus(ClusterBuilder& builder, HostId host, const GpuTopology& topology,
              double otherwise_bytes_per_s);

}  // namespace heddle
