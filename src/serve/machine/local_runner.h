// A model, or a part of its ops, on a device of this machine: compiled at a few batch sizes, run on rows of
// requests. What earlier parts made of a row is read from the row, and what later parts need is left there.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/backend.h"
#include "heddle/serve/live_plane.h"
#include "local_model.h"

namespace heddle {

struct PartOptions {
  bool fp16_cuts = false;  // float32 tensors are left in rows as float16
  double slowdown = 1;     // a run takes so many times as long, by waiting
};

// It has its device for itself while it runs.
class LocalRunner final : public DeviceRunner {
 public:
  // All ops of the model.
  static Result<std::shared_ptr<LocalRunner>> create(std::shared_ptr<const LocalModel> model,
                                                     const Device& device);
  // `ops` of the model's graph, ascending, convex; compiled at each of the model's sizes. Errors: a tensor
  // that crosses the cut and has no row for each row of the batch, those of Model::cut() and of the device.
  static Result<std::shared_ptr<LocalRunner>> create(std::shared_ptr<const LocalModel> model,
                                                     std::vector<OpId> ops, const Device& device,
                                                     const PartOptions& options);
  Status run(std::span<LiveRequest* const> batch) override;  // TensorRows
  std::vector<int> cores() const override { return device_.cores; }
  // Has a row all that this part reads, with the right sizes? For rows that come from elsewhere.
  Status check_row(const TensorRow& row) const;

  // Times of whole runs with what the buffers hold, [batch - 1] for 1 .. the largest size, in us: medians of
  // about `seconds` for each size.
  Result<std::vector<double>> measure(double seconds, const Deadline& deadline);
  // Do rows of a batch give what they give alone? Random rows, compared at every size. Names the tensor where
  // they do not.
  Status check_rows();

 private:
  // A tensor of the segment and where a row has it.
  struct Port {
    TensorId tensor;
    size_t row_bytes = 0;
    std::vector<size_t> places;  // among the model's inputs or outputs; of an output none, one or more
    bool crosses = false;        // from or to another part
    bool half = false;

    size_t kept_bytes() const { return half ? row_bytes / 2 : row_bytes; }  // where it crosses
  };
  struct Size {
    std::unique_ptr<CompiledSegment> segment;
    std::vector<TensorValue> inputs, outputs;
  };
  LocalRunner(std::shared_ptr<const LocalModel> model, std::vector<OpId> ops, const Device& device,
              const PartOptions& options)
      : model_(std::move(model)), ops_(std::move(ops)), device_(device), options_(options) {}
  Status add_ports(const Graph& graph, const SegmentModel& cut);
  Status add_size(int size, const std::shared_ptr<const Model>& model);
  Status compute(std::span<LiveRequest* const> batch);

  std::shared_ptr<const LocalModel> model_;
  std::vector<OpId> ops_;
  Device device_;
  PartOptions options_;
  std::unique_ptr<RuntimeDevice> open_;
  std::vector<Port> inputs_, outputs_;  // as the segment has them
  std::map<int, Size> sizes_;
};

}  // namespace heddle
