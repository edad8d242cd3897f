// The CUDA driver's interface, opened when it is first asked for, so that the program starts without one.
#pragma once

#include <cuda.h>

#include <string>

#include "heddle/base/status.h"

namespace heddle::torch_backend {

struct CudaDriver {
#define HEDDLE_CUDA_FUNCTION(f) decltype(&::f) f = nullptr;
#define HEDDLE_CUDA_GREEN_FUNCTION(f) decltype(&::f) f = nullptr;
#include "cuda_functions.inc"
#undef HEDDLE_CUDA_FUNCTION
#undef HEDDLE_CUDA_GREEN_FUNCTION
  bool has_green = false;

  // Success, or an error that names what was done: kInfeasible where memory ran out.
  Status check(CUresult result, const std::string& what) const;
};

// The driver, initialised; unsupported where there is none or no device. Thread-safe.
Result<const CudaDriver*> cuda_driver();

}  // namespace heddle::torch_backend
