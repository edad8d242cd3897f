// In which floating-point type each op of a float32 model computes on a device of a narrower type.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <string_view>

#include "heddle/cluster/cluster.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/backend.h"
#include "kernel.h"

namespace heddle::torch_backend {

// kUndefined for f32 and tf32, whose tensors are float32.
DType narrow_dtype(Precision precision);

// What an op's float32 inputs are when it runs.
enum class FloatInput : uint8_t { kNone, kConstant, kWide, kNarrow };  // kNone: not float32

// Whether the op computes in the narrow type. Always: convolutions, products, pooling, softmax and normalisations,
// which add up in float32. Never: powers and exponentials, which leave float16's range, and kernels that ATen has in
// float32 alone. Other ops are as narrow as the tensors that they read, unless they `need_range`: the product of a
// tensor by itself, and ops with a constant beyond the type's range. O(inputs).
bool computes_narrow(std::string_view type, std::span<const FloatInput> inputs, bool need_range);
// Normalisations by running statistics, which keep their constants in float32: variances leave fp16's range.
bool keeps_constants(std::string_view type);
// Whether the type holds all finite numbers of the float32 constant.
bool fits(const at::Tensor& constant, DType type);
bool is_square(std::string_view type, int first, int second);  // of the op's first two inputs
// The same for a whole model's graph, whose ops are OpenVINO's: what stays in float32. O(V + E).
WideValues wide_values_of(const Graph& graph);

// The tensor in the type. Numbers beyond the type's become its largest, so that masks of large numbers stay numbers.
at::Tensor in_type(const at::Tensor& tensor, DType type);
// The same for kernels: on a CPU in the carrier; see torch_program.h.
at::Tensor as_floats(const at::Tensor& tensor, DType type, bool on_cpu);

}  // namespace heddle::torch_backend
