// The inputs of every request in flight, and the comparison of its outputs with the unsplit model's.
#pragma once

#include <span>
#include <vector>

#include "heddle/runtime/run.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
std::vector<TensorView> views_of(std::span<const TensorValue> values);

// From a .npy, .pb or .ppm file. Invalid input if it has another type or shape.
Result<TensorValue> read_input(const std::string& path, const Tensor& tensor);

// Copies the inputs, in the graph's order, to each of the executor's slots.
void give_inputs(Executor& executor, std::span<const TensorValue> inputs);
// Then runs one request in each of them.
Status run_every_slot(Executor& executor, std::span<const TensorValue> inputs, const Deadline& deadline);

// Both are in the order of the graph's outputs. Over several calls, `check` keeps the largest errors and
// `outputs_equal` means all. Fails if the numbers of outputs differ.
Status check_outputs(std::span<const TensorView> outputs, std::span<const TensorValue> expected, double rtol,
                     double atol, OutputCheck& check);

}  // namespace heddle
