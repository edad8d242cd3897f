// u64 for libtorch, which lacks it: held in i64 with the same bits. Most ops give the same bits for both.
// Comparisons are shifted to signed order; division and conversion have their own kernels.
#pragma once

#include "kernel.h"

namespace heddle::torch_backend {

// True if the op is correct for u64 once for_unsigned64() has adapted its kernel.
bool takes_unsigned64(const OpNode& op);
// Adapts the kernel to the op's u64 inputs and outputs; unchanged if there are none.
Kernel for_unsigned64(const OpNode& op, Kernel kernel);
// True if a constant u64 has no number beyond i64, so that it can be treated as an i64.
bool fits_signed(const at::Tensor& constant);

}  // namespace heddle::torch_backend
