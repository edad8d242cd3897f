// A model on a device of this machine: loaded, compiled at a few batch sizes, run on rows of requests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/served_model.h"

namespace heddle {

// A model file at several batch sizes; a batch in between runs at the next size.
struct LocalModel {
  ModelSource source;
  ServedModel served;
  std::map<int, std::shared_ptr<const Model>> sizes;  // by batch size
};

// At the batch sizes 1 and `sizes` (ascending), or 1, 2, 4, .. up to the source's largest where there are
// none, up to the first that it does not have. Whether a model can be batched is found out: every input and
// output must have one more row at batch 2. Errors: those of Model::load(), tensors that the protocol does
// not have.
Result<std::shared_ptr<LocalModel>> load_local_model(const ModelSource& source, std::vector<int> sizes = {});

// Compiled for one device, which it has for itself while it runs.
class LocalRunner final : public DeviceRunner {
 public:
  static Result<std::shared_ptr<LocalRunner>> create(std::shared_ptr<const LocalModel> model,
                                                     const Device& device);
  Status run(std::span<LiveRequest* const> batch) override;  // TensorRows
  std::vector<int> cores() const override { return device_.cores; }

  // Times of whole runs with what the buffers hold, [batch - 1] for 1 .. the largest size, in us: medians of
  // about `seconds` for each size.
  Result<std::vector<double>> measure(double seconds, const Deadline& deadline);
  // Do rows of a batch give what they give alone? Random rows, compared at every size. Names the tensor where
  // they do not.
  Status check_rows();

 private:
  struct Size {
    std::unique_ptr<CompiledSegment> segment;
    std::vector<TensorValue> inputs, outputs;
  };
  LocalRunner(std::shared_ptr<const LocalModel> model, Device device)
      : model_(std::move(model)), device_(std::move(device)) {}
  Status add_size(int size, const std::shared_ptr<const Model>& model);

  std::shared_ptr<const LocalModel> model_;
  Device device_;
  std::unique_ptr<RuntimeDevice> open_;
  std::map<int, Size> sizes_;
};

}  // namespace heddle
