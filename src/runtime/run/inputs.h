// Creates model inputs: random tensor contents, and inputs for every request in flight.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/runtime/tensor.h"

namespace heddle {

// Floats uniform in [-1, 1), integers in 0..3 (they may be indices), bools 0 or 1; packed formats stay zero.
void fill_random(const TensorView& tensor, uint64_t seed);

class Executor;
// Copies the inputs, in the graph's order, to each of the executor's slots.
void give_inputs(Executor& executor, std::span<const TensorValue> inputs);

}  // namespace heddle
