// Reads the machine's GPUs from the CUDA driver, the management library and sysfs.
#pragma once

#include "heddle/cluster/gpu_topology.h"

namespace heddle::torch_backend {

// Empty without a driver or device. Unreadable properties are left out.
GpuTopology read_cuda_topology();

}  // namespace heddle::torch_backend
