// This machine as a cluster.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cluster/gpu_topology.h"

namespace heddle {

// The CPU's core sets as devices: all cores as one device, each half, ..., each single core (overlapping: a
// plan uses what serves it best), in host memory, joined by a shared-memory link. Peak rates and bandwidth
// are measured in some 100 ms the first time in a process. Honours the process's affinity mask and cgroup
// limits. `openvino_devices` are further devices that the caller knows of ("GPU.0", "NPU"): they are added
// without rates, so only measurements say what they cost; `gpus` are those that a backend can open.
// Thread-safe.
Result<std::shared_ptr<const Cluster>> discover_local(std::span<const std::string> openvino_devices = {},
                                                      const GpuTopology& gpus = {});

// CPU model, cores, memory, kernel and OpenVINO-independent facts that make measurements comparable: a
// profile taken under another fingerprint is not used as "measured".
std::string machine_fingerprint();

}  // namespace heddle
