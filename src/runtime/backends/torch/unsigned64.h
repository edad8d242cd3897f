// u64 on libtorch, which has none: it is held in an i64 of the same bits. Most ops give the same bits for
// both; orders are made those of signed numbers, and what divides or converts has kernels of its own.
#pragma once

#include "kernel.h"

namespace heddle::torch_backend {

// Whether the op gives the right numbers for u64 once for_unsigned64() has seen its kernel.
bool takes_unsigned64(const OpNode& op);
// The kernel, made right for those of the op's inputs and outputs that are u64; unchanged where there are
// none.
Kernel for_unsigned64(const OpNode& op, Kernel kernel);
// A constant u64 without numbers beyond i64 is as good as one.
bool fits_signed(const at::Tensor& constant);

}  // namespace heddle::torch_backend
