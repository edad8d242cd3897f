// A model's plan, or a part of the model on one device, as the data plane runs it: rows of requests are put
// together, the executor runs the plan, and the outputs go back to their rows. What a part leaves for later
// parts stays with the row.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/executor.h"
#include "heddle/serve/live_plane.h"
#include "local_model.h"

namespace heddle {

struct PartOptions {
  bool fp16_cuts = false;  // float32 tensors are left in rows as float16
  double slowdown = 1;     // factor on the time of a run, by waiting
};

// Each slot runs one batch at a time. As a DeviceRunner it is its first slot.
class PlanRunner final : public DeviceRunner {
 public:
  // All ops of the model on the device, compiled at each of the model's batch sizes.
  static Result<std::shared_ptr<PlanRunner>> create(std::shared_ptr<const LocalModel> model,
                                                    const Device& device);
  // `ops` of the model's graph, ascending, convex. Errors: a tensor that crosses the cut and has no row for
  // each row of the batch, those of Model::cut() and of the device.
  static Result<std::shared_ptr<PlanRunner>> create(std::shared_ptr<const LocalModel> model,
                                                    std::vector<OpId> ops, const Device& device,
                                                    const PartOptions& options);
  // A plan of the whole model for batches of `model->served.max_rows` rows. `graph` is the plan's, `executor`
  // is open, and `cores` are those of cores().
  static std::shared_ptr<PlanRunner> create(std::shared_ptr<const LocalModel> model, const Graph& graph,
                                            std::shared_ptr<Executor> executor, std::vector<int> cores);

  Status run(std::span<LiveRequest* const> batch) override { return run(0, batch); }  // TensorRows
  Status run(int slot, std::span<LiveRequest* const> batch);
  std::vector<int> cores() const override { return cores_; }
  int slots() const { return sizes_.begin()->second->slots(); }
  int lane(int slot) const { return sizes_.begin()->second->lane(slot); }
  // Emulated devices move none: rows are neither read nor written.
  bool moves_data() const { return sizes_.begin()->second->moves_data(); }
  // Has a row all that this part reads, with the right sizes? For rows that come from elsewhere.
  Status check_row(const TensorRow& row) const;

  // Times of whole runs of slot 0 with what the buffers hold, [batch - 1] for 1 .. the largest size, in us:
  // medians of about `seconds` for each size.
  Result<std::vector<double>> measure(double seconds, const Deadline& deadline);
  // Do rows of a batch give what they give alone? Random rows, compared at every size. Names the tensor where
  // they do not.
  Status check_rows();

 private:
  // A tensor that enters or leaves, and where a row has it.
  struct RowTensor {
    TensorId id;  // of the model's graph at batch 1, where it crosses
    std::string name;
    size_t row_bytes = 0;
    std::vector<size_t> places = {};  // among the model's inputs or outputs; of an output none, one or more
    bool crosses = false;             // from or to another part
    bool half = false;

    size_t kept_bytes() const { return half ? row_bytes / 2 : row_bytes; }  // where it crosses
  };

  PlanRunner(std::shared_ptr<const LocalModel> model, std::vector<int> cores, const PartOptions& options)
      : model_(std::move(model)), cores_(std::move(cores)), options_(options) {}
  Status add_part_tensors(const SegmentModel& cut, std::span<const OpId> ops);
  Status add_part_size(int size, std::span<const OpId> ops, const Device& device);
  static RowTensor row_tensor(const Graph& graph, TensorId id, int rows, std::span<const TensorInfo> infos);
  Status compute(int slot, std::span<LiveRequest* const> batch);
  void gather(const Executor& executor, int slot, std::span<LiveRequest* const> batch) const;
  void scatter(const Executor& executor, int slot, std::span<LiveRequest* const> batch) const;
  Status compare_alone(Executor& whole, int size);

  const std::shared_ptr<const LocalModel> model_;
  const std::vector<int> cores_;
  const PartOptions options_;
  std::vector<RowTensor> inputs_, outputs_;  // as the executors have them
  std::map<int, std::shared_ptr<Executor>> sizes_;
};

// The median time of `run`, of about `seconds` of runs and at least 3, in us.
Result<double> median_run_us(double seconds, const Deadline& deadline, const std::function<Status()>& run);

// One slot of the runner for the data plane.
std::shared_ptr<DeviceRunner> slot_runner(std::shared_ptr<PlanRunner> runner, int slot);

}  // namespace heddle
