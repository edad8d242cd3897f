// The torch backend's interface to CUDA. Implemented by cuda/torch_cuda.cc or, if libtorch or the headers
// lack CUDA, by no_cuda.cc.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/cluster/cluster.h"
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
// Calls `work` with `stream` as libtorch's current stream. `tf32`: convolutions and products of float32 tensors are in
// tf32, else in float32; that is one setting of the process, so callers with the other one wait.
Status on_cuda_stream(int device, DeviceStream& stream, bool tf32, const std::function<Status()>& work);
// The types in which the device computes in hardware; float32 alone if there is no such device here.
std::vector<Precision> cuda_precisions(int device);

}  // namespace heddle::torch_backend
