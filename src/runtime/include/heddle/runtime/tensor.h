// Tensor memory at run time: TensorView refers to memory with another owner, TensorValue shares ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle {

// Row-major elements at `data`, valid as long as the owner keeps them.
struct TensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::byte* data = nullptr;
  int64_t bytes = 0;
};

// Copies share the memory.
struct TensorValue {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::shared_ptr<std::byte[]> data;  // 64-byte aligned, tensor_bytes(dtype, shape) long
  int64_t bytes = 0;

  TensorView view() const { return {dtype, shape, data.get(), bytes}; }
};

// Zeroed. Fails (invalid input) if the size overflows, the dtype is string, or memory is exhausted.
Result<TensorValue> make_tensor(DType dtype, const Shape& shape);
// At least one byte, zeroed, 64-byte aligned for vector units and cache lines. Null if memory is exhausted.
std::shared_ptr<std::byte[]> allocate_aligned(int64_t bytes);

// The elements of an i64 tensor.
Shape shape_values(const TensorView& tensor);
// The part of `tensor` with the indices below `shape` in each dimension, copied: an output of the size that
// another one holds (Model::sized_outputs()). Fails (internal) if `shape` does not fit. O(bytes).
Result<TensorValue> front_corner(const TensorView& tensor, const Shape& shape);

// The element as a number; of dtypes below 8 bits, which are packed, the byte.
double element_as_double(const TensorView& tensor, int64_t index);
// How many of these there are.
int64_t numbers_in(const TensorView& tensor);

struct TensorDifference {
  bool equal = true;  // same dtype and shape, and all |a - b| <= atol + rtol * |b| (NaN equals NaN)
  double max_abs = 0;
  double max_rel = 0;  // a - b| / max(|b|, atol), which stays bounded near zero
};
TensorDifference compare_tensors(const TensorView& actual, const TensorView& expected, double rtol,
                                 double atol);

}  // namespace heddle
