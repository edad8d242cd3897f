#include "torch_cuda.h"

namespace heddle::torch_backend {

const char* where_ops_run() { return "on the CPU"; }

GpuTopology cuda_topology() { return {}; }

Result<std::shared_ptr<StreamRuntime>> open_cuda(const std::string& name) {
  return unsupported("'" + name +
                     "' needs a libtorch with CUDA, and CUDA's headers, when Heddle is built; this "
                     "program has 'cpu' alone");
}

std::unique_ptr<CudaWorkspace> make_workspace(std::shared_ptr<StreamRuntime>, DeviceStream&) {
  return nullptr;
}

Status on_cuda_stream(int, DeviceStream&, bool, const std::function<Status()>&) {
  return internal_error("CUDA is called by a program without it");
}

std::vector<Precision> cuda_precisions(int) { return {Precision::kF32}; }

}  // namespace heddle::torch_backend
