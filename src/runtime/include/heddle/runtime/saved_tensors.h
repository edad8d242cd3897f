// The tensors of one request of a run, and files with them.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// In the order of the graph's inputs and outputs.
struct RunTensors {
  std::vector<TensorValue> inputs, outputs;
};

// Before a run: makes the folder if only that one is missing. Unsupported if an input or output of the graph has a type
// that .npy files lack.
Status prepare_saving(const Graph& graph, const std::string& folder);
// Writes input_0.npy, ..., output_0.npy, ... into the folder, and replaces files of these names. Gives their names.
// calibration_inputs() takes such a folder for a sample.
Result<std::vector<std::string>> save_tensors(const RunTensors& tensors, const std::string& folder);

}  // namespace heddle
