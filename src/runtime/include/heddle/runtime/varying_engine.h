// A whole model on one device, compiled once, that takes inputs of any shape within its limits.
#pragma once

#include <memory>
#include <span>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/graph/varying_model.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// One request at a time.
class VaryingRequest {
 public:
  virtual ~VaryingRequest() = default;
  // Inputs in the order of VaryingModel::inputs(), outputs in the file's; an output without data
  // is not copied. Internal if an output comes
  // in another type or shape than its view. On the calling thread, which the caller binds to the device's cores.
  virtual Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) = 0;
};

// Thread-safe.
class VaryingEngine {
 public:
  virtual ~VaryingEngine() = default;
  virtual Result<std::unique_ptr<VaryingRequest>> request() = 0;
};

// Unsupported if the device is not one of OpenVINO, or if OpenVINO cannot compile the model with open dimensions.
Result<std::shared_ptr<VaryingEngine>> open_varying(std::shared_ptr<const VaryingModel> model,
                                                    const Device& device);

}  // namespace heddle
