// Tensor memory at run time: a view (who owns it is known elsewhere) and a value that shares ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle {

// Row-major elements at `data`. Valid as long as its owner says.
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

// Zeroed. Fails (invalid input) when the size overflows, strings are asked for, or the memory is not there.
Result<TensorValue> make_tensor(DType dtype, const Shape& shape);
// At least one byte, zeroed, 64-byte aligned: what vector units and caches like. Null when there is no
// memory.
std::shared_ptr<std::byte[]> allocate_aligned(int64_t bytes);

// The element as a number; only for dtypes of 8 bits or more that are no strings.
double element_as_double(const TensorView& tensor, int64_t index);

struct TensorDifference {
  bool equal = true;  // same dtype and shape, and all |a - b| <= atol + rtol * |b| (NaN equals NaN)
  double max_abs = 0;
  double max_rel = 0;  // |a - b| / max(|b|, atol): no blow-up around zero
};
TensorDifference compare_tensors(const TensorView& actual, const TensorView& expected, double rtol,
                                 double atol);

}  // namespace heddle
