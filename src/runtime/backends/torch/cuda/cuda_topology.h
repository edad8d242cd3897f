// The machine's GPUs, by the CUDA driver, the management library and the file system of devices.
#pragma once

#include "heddle/cluster/gpu_topology.h"

namespace heddle::torch_backend {

// Empty where there is no driver or no device. What cannot be read is left out.
GpuTopology read_cuda_topology();

}  // namespace heddle::torch_backend
