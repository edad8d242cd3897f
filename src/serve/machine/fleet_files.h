// The whole models of a fleet with files: their descriptions for clients, and the outputs that those of their
// parts are compared with.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet.h"
#include "model_parts.h"
#include "plan_runner.h"
#include "split_check.h"

namespace heddle {

// A model as a plan runs it.
struct UnsplitModel {
  FleetModelFile file;
  std::shared_ptr<const LocalModel> local;
  int max_batch = 0;
  std::vector<TensorValue> inputs, outputs;  // of one random row, by the whole model
};

// One thread at a time.
class FleetFiles {
 public:
  // Loads the model for the batches that the plan runs of it, checks on `device` in float32 that rows of a batch do not
  // depend on each other, and runs the random row; what the last plan had of it is kept.
  Result<std::shared_ptr<const UnsplitModel>> whole(const FleetModel& model, int max_batch,
                                                    const Device& device);
  // Drops the models that whole() did not return since the last call.
  void plan_made();
  ModelParts& parts() { return parts_; }

 private:
  ModelParts parts_;
  std::map<std::string, std::shared_ptr<const UnsplitModel>> last_, next_;  // by model
};

// What became of a model that was cut into parts, over all of its pipelines.
struct SplitCheck {
  TensorGap worst;         // of an output
  bool narrow = false;     // parts computed in types narrower than the whole model's float32
  bool split = false;      // a pipeline has more than one part
  std::string unverified;  // why some pipeline was not compared; empty: all were
};
// The model as clients see it, with a note on how much its outputs differ. Errors: outputs that differ
// by more than rounding.
Result<std::shared_ptr<ServedModel>> served_in_parts(const FleetModel& model, const UnsplitModel& whole,
                                                     double slo_us, const SplitCheck& check);
// The largest batch that the plan's pipelines run of the model.
int largest_batch(const Deployment& deployment, uint32_t model);

}  // namespace heddle
