// A part of a model's ops on a device of this machine: what earlier parts made of a request's rows is read
// from the rows, and what later parts need is left there.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/backend.h"
#include "local_runner.h"

namespace heddle {

struct PartitionOptions {
  bool fp16_cuts = false;  // float32 tensors are left in rows as float16
  double slowdown = 1;     // a run takes so many times as long, by waiting
};

class PartitionRunner final : public DeviceRunner {
 public:
  // `ops` of the model's graph, ascending, convex; compiled at each of the model's sizes. Errors: a tensor
  // that crosses the cut and has no row for each row of the batch, those of Model::cut() and of the device.
  static Result<std::shared_ptr<PartitionRunner>> create(std::shared_ptr<const LocalModel> model,
                                                         std::vector<OpId> ops, const Device& device,
                                                         const PartitionOptions& options);
  Status run(std::span<LiveRequest* const> batch) override;  // TensorRows
  std::vector<int> cores() const override { return device_.cores; }

 private:
  // A tensor of the segment and where a row has it.
  struct Port {
    TensorId tensor;
    size_t row_bytes = 0;
    std::vector<size_t> places;  // among the model's inputs or outputs; of an output none, one or more
    bool crosses = false;        // from or to another part
    bool half = false;
  };
  struct Size {
    std::unique_ptr<CompiledSegment> segment;
    std::vector<TensorValue> inputs, outputs;
  };
  PartitionRunner(std::shared_ptr<const LocalModel> model, std::vector<OpId> ops, const Device& device,
                  const PartitionOptions& options)
      : model_(std::move(model)), ops_(std::move(ops)), device_(device), options_(options) {}
  Status add_ports(const Graph& graph, const SegmentModel& cut);
  Status add_size(int size, const std::shared_ptr<const Model>& model);
  Status compute(std::span<LiveRequest* const> batch);

  std::shared_ptr<const LocalModel> model_;
  std::vector<OpId> ops_;
  Device device_;
  PartitionOptions options_;
  std::unique_ptr<RuntimeDevice> open_;
  std::vector<Port> inputs_, outputs_;  // as the segment has them
  std::map<int, Size> sizes_;
};

}  // namespace heddle
