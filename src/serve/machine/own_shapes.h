// Requests of varying shapes that each run at their own: the whole model with open dimensions on one device.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/graph/varying_model.h"
#include "heddle/runtime/varying_engine.h"
#include "heddle/serve/live_plane.h"
#include "local_model.h"

namespace heddle {

// A model file with open dimensions, and where its inputs and outputs stand among those that are served.
struct OpenModel {
  std::shared_ptr<const VaryingModel> model;
  std::vector<size_t> inputs, outputs;  // [of the model]: the place among the served ones
  bool batched = false;                 // rows have a dimension more in the model
};

// `local` is the model at one of its buckets. Errors: VaryingModel::load()'s.
Result<OpenModel> open_model(const LocalModel& local, const NamedShapes& largest, const NamedShapes& open);

// The outputs' row shapes, in the served order, for those of the inputs. Errors: VaryingModel::output_shapes()'s.
Result<std::vector<Shape>> output_rows(const OpenModel& open, const ServedModel& served,
                                       std::span<const Shape> inputs);

// Runs rows one by one.
class OwnShapeRunner final : public DeviceRunner {
 public:
  // `served` outlives it. Errors: open_varying()'s.
  static Result<std::shared_ptr<OwnShapeRunner>> create(const OpenModel& open, const ServedModel& served,
                                                        const Device& device);
  Status run(std::span<LiveRequest* const> batch) override;
  std::vector<int> cores() const override { return cores_; }

  // The median time of a request with these shapes, in us, of about `seconds` of random requests.
  Result<double> measure(const ServedBucket& bucket, double seconds, const Deadline& deadline);

 private:
  OwnShapeRunner(OpenModel open, std::vector<DType> inputs, std::vector<DType> outputs,
                 std::vector<int> cores)
      : open_(std::move(open)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        cores_(std::move(cores)) {}

  const OpenModel open_;
  const std::vector<DType> inputs_, outputs_;  // in the served order
  const std::vector<int> cores_;
  std::mutex mutex_;  // buckets that have devices of their own there share the runner; guards what follows
  std::unique_ptr<VaryingRequest> request_;
};

}  // namespace heddle
