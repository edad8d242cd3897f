// Inputs for every request in flight.
#pragma once

#include <span>

#include "heddle/runtime/run.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
// Copies the graph's inputs, in its order, to each of the executor's slots.
void give_inputs(Executor& executor, std::span<const TensorValue> inputs);

}  // namespace heddle
