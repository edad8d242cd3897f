// This machine as a cluster.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cluster/gpu_topology.h"

namespace heddle {

// The CPU's core sets become devices: all cores, each half, ..., each single core. They overlap; a plan uses
// those that serve it best. Sets of one size that differ in physical cores or their kinds are of different classes and
// targets. They are in host memory, connected by shared-memory links. Peak rates and
// bandwidth are measured once per process, in about 100 ms. Respects the process's affinity mask and cgroup
// limits. `openvino_devices` are further devices known to the caller ("GPU.0", "NPU"); they have no rates, so
// only measurements give their costs. `gpus` are those that a backend can open. Thread-safe.
Result<std::shared_ptr<const Cluster>> discover_local(std::span<const std::string> openvino_devices = {},
                                                      const GpuTopology& gpus = {});

// CPU model, cores, memory, kernel: facts that make measurements comparable, independent of OpenVINO. A
// profile taken under another fingerprint does not count as "measured".
std::string machine_fingerprint();

}  // namespace heddle
