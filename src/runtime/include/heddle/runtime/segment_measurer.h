// Measures segments as the executor runs them, alone or several at once, and fits the stage model to these sets.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/cost/measurer.h"
#include "heddle/cost/stage_model.h"
#include "heddle/graph/graph.h"
#include "heddle/runtime/blocking_device.h"

namespace heddle {

class Model;

struct MeasureOptions {
  double min_s = 0.3;  // per segment, after warm-up
  double max_s = 1.5;  // limit if the median is not yet known to 2 %
  int min_runs = 10;
};

// One segment for repeated timing: compiled, bound and pinned as in the executor, with the caches in the
// state that the rest of the model leaves. Others may use the open device between samples, but not during
// one. Not thread-safe.
class SegmentProbe {
 public:
  // `ops` of the model's finest graph, ascending. With `host_access` the parameters are read in place from
  // host memory: accelerators only, else an error (unsupported).
  static Result<std::unique_ptr<SegmentProbe>> make(const std::shared_ptr<const Model>& model,
                                                    std::span<const OpId> ops, const Device& device,
                                                    bool host_access = false);
  Result<Measurement> sample(const MeasureOptions& options, const Deadline& deadline);
  // Sets alone.core_taken, for devices with cores. Runs alone and beside a thread that keeps one of the cores busy take
  // turns, because a shared machine changes its speed by the second. If other work delays the runs alone, it raises
  // alone.rel_spread. It changes nothing if it is stopped before the first turn.
  Status sample_core_taken(Measurement& alone, const Deadline& deadline);
  // One run on the calling thread. prepare() warms or empties the caches before it.
  void prepare();
  // An accelerator's inputs stay where make() has copied them.
  Status run_once() { return blocking_ != nullptr ? blocking_->compute(0) : segment_->run(0); }
  // The calling thread is to be bound to them; may be empty.
  std::span<const int> cores() const { return cores_; }

 private:
  SegmentProbe() = default;
  Status bind(const Graph& graph, std::span<const OpId> ops, const std::shared_ptr<const Model>& model,
              bool host_access, const WideValues& wide);
  Result<double> mean_us(int runs, const Deadline& deadline);
  void evict();
  void warm() const;

  std::vector<int> cores_;
  std::unique_ptr<RuntimeDevice> device_;
  std::vector<TensorValue> inputs_, outputs_;  // must outlive the segment, which may still copy them
  BlockingSegment* blocking_ = nullptr;        // the segment, on accelerators; otherwise null
  std::unique_ptr<CompiledSegment> segment_;
  int64_t evicted_bytes_ = 0;
  int warmups_ = 0;
  std::vector<unsigned char> scratch_;
};

// All probes at once, each on a thread of its own bound to its cores: a measurement is the time from the
// common start to the last end. At least `least_runs` runs, more for up to `min_s` seconds. Stopped before: an error.
Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline);

// Measures segments of `model` on the devices of all backends that compute, each with a probe; on shares of a
// device with one on each of them at once, so that no share is promised more than the slowest one gives.
// Supports devices of at least that many shares (most_shares()), and, for host access, accelerators that can
// read the host's memory (each is opened once, to see). Not thread-safe.
std::unique_ptr<SegmentMeasurer> make_segment_measurer(std::shared_ptr<const Model> model,
                                                       const MeasureOptions& options = {},
                                                       const MeasureConditions& conditions = {});

// Two or more segments that ran at once: `items` with their times alone, and the time of the set.
struct StageSample {
  std::vector<StageItem> items;
  double us = 0;
};

struct StageFit {
  StageModel model;
  int samples = 0;
  double median_error = 0, largest_error = 0;  // |t(S) - measured| / measured
};

// The stage model with non-negative coefficients that minimises the sum of squared relative errors. Without
// samples: segments run one after another. O(samples).
StageFit fit_stage_model(std::span<const StageSample> samples);

}  // namespace heddle
