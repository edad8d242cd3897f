// In which floating-point type each op of a float32 model computes on a device of a narrower type.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "heddle/cluster/cluster.h"
#include "kernel.h"

namespace heddle::torch_backend {

// kUndefined for f32 and tf32, whose tensors are float32.
DType narrow_dtype(Precision precision);

// What an op's float32 inputs are when it runs.
enum class FloatInput : uint8_t { kNone, kConstant, kWide, kNarrow };  // kNone: not float32

// Whether the op computes in the narrow type. Always: convolutions, products, pooling, softmax and normalisations,
// which add up in float32. Never: powers and exponentials, which leave float16's range, and kernels that ATen has in
// float32 alone. Other ops are as narrow as the tensors that they read. O(inputs).
bool computes_narrow(const OpNode& node, std::span<const FloatInput> inputs);

// The carrier's values rounded to the type, or the tensor in it; see torch_program.h.
at::Tensor as_floats(const at::Tensor& tensor, DType type, bool on_cpu);

}  // namespace heddle::torch_backend
