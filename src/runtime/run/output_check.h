// Compares a run's outputs with the unsplit model's and notes the result in the run's record.
#pragma once

#include <span>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// Both are in the order of the graph's outputs; the tolerances are the record's. Over several calls, the
// record keeps the largest errors and `outputs_equal` means all. Fails if the numbers of outputs differ.
Status note_comparison(const Graph& graph, std::span<const TensorView> outputs,
                       std::span<const TensorValue> expected, RunRecord& record);

}  // namespace heddle
