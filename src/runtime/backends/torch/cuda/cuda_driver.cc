#include "cuda_driver.h"

#include <dlfcn.h>

namespace heddle::torch_backend {
namespace {

#define HEDDLE_CUDA_TEXT(f) #f
#define HEDDLE_CUDA_SYMBOL(f) HEDDLE_CUDA_TEXT(f)

Result<CudaDriver> open_driver() {
  // Never closed: contexts live until the process ends.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unsupported(
        "this machine has no CUDA driver (libcuda.so.1); install NVIDIA's, or use 'cpu' in the place "
        "of a CUDA device");
  }
  CudaDriver driver;
  driver.has_green = true;
  const char* missing = nullptr;
#define HEDDLE_CUDA_FUNCTION(f)                                                           \
  driver.f = reinterpret_cast<decltype(driver.f)>(dlsym(library, HEDDLE_CUDA_SYMBOL(f))); \
  if (driver.f == nullptr) missing = HEDDLE_CUDA_SYMBOL(f);
#define HEDDLE_CUDA_GREEN_FUNCTION(f)                                                     \
  driver.f = reinterpret_cast<decltype(driver.f)>(dlsym(library, HEDDLE_CUDA_SYMBOL(f))); \
  driver.has_green = driver.has_green && driver.f != nullptr;
#include "cuda_functions.inc"
#undef HEDDLE_CUDA_FUNCTION
#undef HEDDLE_CUDA_GREEN_FUNCTION
  if (missing != nullptr) {
    return unsupported(std::string("the CUDA driver has no ") + missing +
                       ": it is older than the CUDA that this program was built with; "
                       "update it");
  }
  const CUresult ready = driver.cuInit(0);
  if (ready == CUDA_ERROR_NO_DEVICE) return unsupported("the CUDA driver finds no device on this machine");
  HEDDLE_RETURN_IF_ERROR(driver.check(ready, "starting the driver"));
  return driver;
}

}  // namespace

Status CudaDriver::check(CUresult result, const std::string& what) const {
  if (result == CUDA_SUCCESS) return {};
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "an unknown error";
  const Code code = result == CUDA_ERROR_OUT_OF_MEMORY ? Code::kInfeasible : Code::kUnsupported;
  return Error(code, "CUDA: " + what + ": " + text + " (" + std::to_string(static_cast<int>(result)) + ")");
}

Result<const CudaDriver*> cuda_driver() {
  static const Result<CudaDriver> driver = open_driver();
  if (!driver.ok()) return driver.error();
  return &*driver;
}

}  // namespace heddle::torch_backend
