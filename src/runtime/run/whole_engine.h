// The unsplit model on one engine, on all cores of this machine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// Not thread-safe.
class WholeEngine {
 public:
  virtual ~WholeEngine() = default;
  virtual int requests() const = 0;  // in flight, in infer_many()
  // One request, by the engine's settings for latency.
  virtual Status infer() = 0;
  // So many requests, requests() of them in flight.
  virtual Status infer_many(int count) = 0;
  // Of the first request, in the order of the model's outputs.
  virtual Result<std::vector<TensorValue>> outputs() = 0;
};

// Gives the inputs to every request. `throughput`: by the engine's settings for throughput. Unsupported if the
// engine is absent or cannot run the model.
Result<std::unique_ptr<WholeEngine>> open_whole(Engine engine, const Model& model, bool throughput,
                                                std::span<const TensorValue> inputs);

// For open_whole(). `engine` is one of OpenVINO's.
Result<std::unique_ptr<WholeEngine>> open_whole_openvino(Engine engine, const Model& model, bool throughput,
                                                         std::span<const TensorValue> inputs);
Result<std::unique_ptr<WholeEngine>> open_whole_onnxruntime(const Model& model, bool throughput,
                                                            std::span<const TensorValue> inputs);

// The outputs for each sample, in the order of the graph's outputs, by OpenVINO on all cores in that type. Unsupported
// if the CPU does not compute in it.
Result<std::vector<std::vector<TensorValue>>> unsplit_outputs(
    const Model& model, Precision precision, std::span<const std::vector<TensorValue>> samples);

}  // namespace heddle
