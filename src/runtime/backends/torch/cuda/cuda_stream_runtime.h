// The stream runtime on a CUDA device, by the driver's interface (docs/torch.md).
#pragma once

#include <memory>

#include "heddle/runtime/stream_runtime.h"
#include "streams/accelerator_name.h"

namespace heddle::torch_backend {

// Retains the device's primary context, which libtorch uses too. Unsupported if the driver, the device or
// (for a share) green contexts are missing.
Result<std::shared_ptr<StreamRuntime>> make_cuda_runtime(const AcceleratorName& name);

}  // namespace heddle::torch_backend
