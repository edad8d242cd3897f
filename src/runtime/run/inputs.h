// The inputs of every request in flight, and the comparison of its outputs with the unsplit model's.
#pragma once

#include <span>

#include "heddle/runtime/run.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
// Copies the inputs, in the graph's order, to each of the executor's slots.
void give_inputs(Executor& executor, std::span<const TensorValue> inputs);

// Both are in the order of the graph's outputs. Over several calls, `check` keeps the largest errors and
// `outputs_equal` means all. Fails if the numbers of outputs differ.
Status check_outputs(std::span<const TensorView> outputs, std::span<const TensorValue> expected, double rtol,
                     double atol, OutputCheck& check);
// The same with the record's tolerances; also notes the names of the outputs.
Status note_comparison(const Graph& graph, std::span<const TensorView> outputs,
                       std::span<const TensorValue> expected, RunRecord& record);

}  // namespace heddle
