// Where the backend meets CUDA. One of two sources stands behind it: cuda/torch_cuda.cc, or no_cuda.cc where
// libtorch or the headers have no CUDA.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>

#include "heddle/cluster/gpu_topology.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle::torch_backend {

// "CPU and CUDA devices", or "CPU"; for `heddle devices --backends`.
const char* where_ops_run();
// What the driver tells; no GPU where there is none, or no driver.
GpuTopology cuda_topology();
// `name` as in cluster files; unsupported where the program, the machine or the driver has no such device.
Result<std::shared_ptr<StreamRuntime>> open_cuda(const std::string& name);

// Memory that libtorch takes while it works on one stream comes from a workspace of its own.
class CudaWorkspace {
 public:
  virtual ~CudaWorkspace() = default;
  virtual Status reserve(int64_t bytes) = 0;
};
// Only for a runtime and a stream of CUDA. Both outlive the workspace, which outlives what uses it.
std::unique_ptr<CudaWorkspace> make_workspace(std::shared_ptr<StreamRuntime> runtime, DeviceStream& stream);
// Calls `work` with libtorch's current stream set to this one.
Status on_cuda_stream(int device, DeviceStream& stream, const std::function<Status()>& work);

}  // namespace heddle::torch_backend
