// Outputs of a run against the unsplit model's, into its record.
#pragma once

#include <span>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// Both in the order of the graph's outputs; the record's tolerances hold. Errors of several calls add up to
// the largest, and `outputs_equal` is true when all were equal. Fails when the numbers of outputs differ.
Status note_comparison(const Graph& graph, std::span<const TensorView> outputs,
                       std::span<const TensorValue> expected, RunRecord& record);

}  // namespace heddle
