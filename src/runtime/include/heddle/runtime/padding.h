// Tensors made larger by padding.
#pragma once

#include "heddle/runtime/tensor.h"

namespace heddle {

// A copy in the front corner of a tensor of the larger `shape`; the rest is `value`. front_corner() is the way
// back. Fails if the tensor does not fit (internal), if its type does not have the value (invalid input), or
// for a value other than 0 in types of 16-bit floats (unsupported). O(bytes).
Result<TensorValue> padded(const TensorView& tensor, const Shape& shape, double value);

}  // namespace heddle
