// Runs the unsplit model with OpenVINO alone, for reference outputs and comparisons.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

enum class WholeMode { kLatency, kThroughput };

// Not thread-safe.
class WholeModel {
 public:
  // Compiles for all cores with OpenVINO's own hint, and copies the inputs into every request.
  static Result<std::unique_ptr<WholeModel>> create(const Model& model, WholeMode mode,
                                                    std::span<const TensorValue> inputs);
  virtual ~WholeModel() = default;
  virtual int requests() const = 0;                        // number in flight
  virtual Status infer() = 0;                              // one synchronous request
  virtual Status infer_many(int count) = 0;                // asynchronous, requests() in flight
  virtual Result<std::vector<TensorValue>> outputs() = 0;  // of the first request
};

}  // namespace heddle
