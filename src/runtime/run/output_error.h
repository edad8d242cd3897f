// How far outputs are from those of the same model in float32.
#pragma once

#include <span>

#include "heddle/runtime/run.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// O(elements).
OutputError output_error(std::span<const TensorValue> actual, std::span<const TensorValue> expected);

}  // namespace heddle
