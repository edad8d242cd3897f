// Random tensor contents.
#pragma once

#include <cstdint>

#include "heddle/runtime/tensor.h"

namespace heddle {

// Floats uniform in [-1, 1), integers in 0..3 (they may be indices), bools either; packed formats stay zero.
void fill_random(const TensorView& tensor, uint64_t seed);

}  // namespace heddle
