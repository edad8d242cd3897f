// The CUDA driver's interface, opened on first use, so that the program starts without a driver.
#pragma once

#include <cuda.h>

#include <string>

#include "heddle/base/status.h"
#include "heddle/cluster/gpu_topology.h"

namespace heddle::torch_backend {

struct CudaDriver {
#define HEDDLE_CUDA_FUNCTION(f) decltype(&::f) f = nullptr;
#define HEDDLE_CUDA_GREEN_FUNCTION(f) decltype(&::f) f = nullptr;
#include "cuda_functions.inc"
#undef HEDDLE_CUDA_FUNCTION
#undef HEDDLE_CUDA_GREEN_FUNCTION
  bool has_green = false;

  // Ok, or an error that names the operation; kInfeasible if memory is exhausted.
  Status check(CUresult result, const std::string& what) const;
};

// The machine's GPUs, from the driver, the management library and sysfs. Empty without a driver or device.
// Unreadable properties are left out.
GpuTopology read_cuda_topology();

// The major number of the device's compute capability; 0 if there is no such device.
int compute_capability_major(int index);

// The initialised driver; unsupported if there is no driver or no device. Thread-safe.
Result<const CudaDriver*> cuda_driver();

}  // namespace heddle::torch_backend
