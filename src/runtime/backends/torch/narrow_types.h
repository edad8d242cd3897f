// Types that ATen lacks: 4- and 8-bit floats, 4-bit integers. Kernels on a CPU compute them in carriers (f32;
// i8 and u8). After each op the results are rounded to the type, as ONNX's Cast does:
// https://onnx.ai/onnx/technical/float8.html and float4.html.
#pragma once

#include <ATen/ATen.h>

#include "op_node.h"

namespace heddle::torch_backend {

bool is_narrow(DType dtype);  // one of these

// Copies the view's elements to a carrier. Two 4-bit elements share a byte, the first one in the lower half.
// O(elements).
at::Tensor widen(const TensorView& view, FloatCode code);
// Writes a carrier's elements to the view; the type must be able to represent them.
void store_narrow(const at::Tensor& tensor, FloatCode code, const TensorView& view);

// Rounds a carrier to values of the type. Floats: to the nearest number, ties to the even code. Numbers
// beyond the range, including infinity, become the largest one (the importer drops ONNX's `saturate = 0`).
// e8m0 has only powers of two and rounds up, which is ONNX's default `round_mode`. Integers keep the lowest
// four bits.
at::Tensor settle_narrow(const at::Tensor& tensor, DType dtype, FloatCode code);

}  // namespace heddle::torch_backend
