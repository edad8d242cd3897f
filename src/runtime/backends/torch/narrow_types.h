// Types that ATen does not have: floats of 4 and 8 bits, integers of 4. Kernels on a CPU compute them in
// carriers (f32; i8 and u8), and after each op what they hold is rounded to the type, as ONNX's Cast does:
// https://onnx.ai/onnx/technical/float8.html and float4.html.
#pragma once

#include <ATen/ATen.h>

#include "op_node.h"

namespace heddle::torch_backend {

bool is_narrow(DType dtype);  // one of these

// The view's elements in the carrier, in memory of their own. Elements of 4 bits lie two to a byte, the first
// one in the lower half. O(elements).
at::Tensor widen(const TensorView& view, FloatCode code);
// Writes a carrier's elements, which the type holds, into the view.
void store_narrow(const at::Tensor& tensor, FloatCode code, const TensorView& view);

// In the carrier, what the type holds of it. Floats: the nearest number, of two the one with an even code,
// and the largest one for what is beyond it, infinity too (the importer drops ONNX's `saturate = 0`); of
// e8m0, which has powers of two alone, the next one up, as ONNX's default `round_mode` says. Integers: the
// lowest four bits.
at::Tensor settle_narrow(const at::Tensor& tensor, DType dtype, FloatCode code);

}  // namespace heddle::torch_backend
