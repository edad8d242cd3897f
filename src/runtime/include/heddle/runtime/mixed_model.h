// A model in pieces, each compiled for several devices of this machine, which runs with any of them for each piece.
// It shows how a narrower type in some pieces changes the outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Model;

// Not thread-safe; runs on the calling thread and its devices' threads.
class MixedModel {
 public:
  // `pieces`: ops of the model's graph, ascending and convex, every op once; a piece comes after those that it reads
  // from. `devices` compute in host memory, and the first is that of choice 0. Unsupported for accelerators with
  // memory of their own, and if a piece does not compile.
  static Result<std::unique_ptr<MixedModel>> make(const std::shared_ptr<const Model>& model,
                                                  const std::vector<std::vector<OpId>>& pieces,
                                                  std::span<const Device> devices, const Control& control);
  virtual ~MixedModel() = default;

  // Runs the inputs, in the graph's order, with choice 0 for every piece.
  virtual Status set_sample(std::span<const TensorValue> inputs) = 0;
  // The outputs, in the graph's order, with device choice[p] for piece p; valid until the next call. Pieces that
  // set_sample() has run on the same device with the same inputs are not run again.
  virtual Result<std::vector<TensorView>> run(std::span<const uint8_t> choice) = 0;
};

}  // namespace heddle
