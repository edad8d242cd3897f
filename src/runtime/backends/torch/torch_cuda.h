// The torch backend's interface to CUDA. Implemented by cuda/torch_cuda.cc or, if libtorch or the headers
// lack CUDA, by no_cuda.cc.
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
// The topology from the driver; empty without a GPU or driver.
GpuTopology cuda_topology();
// `name` as in cluster files; unsupported if the program, the machine or the driver lacks such a device.
Result<std::shared_ptr<StreamRuntime>> open_cuda(const std::string& name);

// libtorch's allocations during work on one stream come from a workspace of that stream.
class CudaWorkspace {
 public:
  virtual ~CudaWorkspace() = default;
  virtual Status reserve(int64_t bytes) = 0;
};
// For CUDA runtimes and streams only. Both must outlive the workspace, which must outlive its users.
std::unique_ptr<CudaWorkspace> make_workspace(std::shared_ptr<StreamRuntime> runtime, DeviceStream& stream);
// Calls `work` with `stream` as libtorch's current stream.
Status on_cuda_stream(int device, DeviceStream& stream, const std::function<Status()>& work);

}  // namespace heddle::torch_backend
