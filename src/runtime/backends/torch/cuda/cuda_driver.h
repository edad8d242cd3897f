// The CUDA driver's interface, opened when it is first asked for, so that the program starts without one.
#pragma once

#include <cuda.h>

#include <string>

#include "heddle/base/status.h"

namespace heddle::torch_backend {

// Names as cuda.h has them: its macros put the versions behind them that this program was compiled with.
#define HEDDLE_CUDA_FUNCTIONS(X)                                                                           \
  X(cuInit)                                                                                                \
  X(cuGetErrorString)                                                                                      \
  X(cuDeviceGetCount)                                                                                      \
  X(cuDeviceGet)                                                                                           \
  X(cuDeviceGetName) X(cuDeviceTotalMem) X(cuDeviceGetAttribute) X(cuDeviceGetPCIBusId)                    \
      X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) \
          X(cuCtxSynchronize) X(cuCtxEnablePeerAccess) X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc)        \
              X(cuMemFreeHost) X(cuMemHostGetDevicePointer) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync)      \
                  X(cuMemcpyDtoDAsync) X(cuMemcpyPeerAsync) X(cuStreamCreate) X(cuStreamDestroy)           \
                      X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamBeginCapture)                  \
                          X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch)            \
                              X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuEventCreate) X(cuEventDestroy)   \
                                  X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize)                   \
                                      X(cuEventElapsedTime)
// Drivers from 12.4 on: parts of a device.
#define HEDDLE_CUDA_GREEN_FUNCTIONS(X) \
  X(cuDeviceGetDevResource)            \
  X(cuDevSmResourceSplitByCount)       \
  X(cuDevResourceGenerateDesc)         \
  X(cuGreenCtxCreate) X(cuGreenCtxDestroy) X(cuGreenCtxStreamCreate) X(cuCtxFromGreenCtx)

struct CudaDriver {
#define HEDDLE_CUDA_MEMBER(f) decltype(&::f) f = nullptr;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_CUDA_MEMBER)
  HEDDLE_CUDA_GREEN_FUNCTIONS(HEDDLE_CUDA_MEMBER)
#undef HEDDLE_CUDA_MEMBER
  bool has_green = false;

  // Success, or an error that names what was done: kInfeasible where memory ran out.
  Status check(CUresult result, const std::string& what) const;
};

// The driver, initialised; unsupported where there is none or no device. Thread-safe.
Result<const CudaDriver*> cuda_driver();

}  // namespace heddle::torch_backend
