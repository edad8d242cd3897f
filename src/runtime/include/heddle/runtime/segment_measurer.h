// Measuring segments as the executor runs them.
#pragma once

#include <memory>
#include <span>

#include "heddle/cost/measurer.h"
#include "heddle/runtime/blocking_device.h"

namespace heddle {

class Model;

struct MeasureOptions {
  double min_s = 0.3;  // per segment, after warm-up
  double max_s = 1.5;  // when the median is not yet known within 2 %
  int min_runs = 10;
};

// One segment, ready to be timed again and again: compiled, bound and pinned as the executor does it, with
// the caches in the state that the rest of the model leaves. The open device may be used by others between
// samples, not during one. Not thread-safe.
class SegmentProbe {
 public:
  virtual ~SegmentProbe() = default;
  virtual Result<Measurement> sample(const MeasureOptions& options, const Deadline& deadline) = 0;
  // One run on the calling thread, with the caches warmed or emptied before it.
  virtual void prepare() = 0;
  virtual Status run_once() = 0;
  virtual std::span<const int> cores() const = 0;  // that the calling thread is to be bound to; may be empty
};
// `ops` of the model's finest graph, ascending. `place` is for accelerators; unsupported on other devices
// when it is the host's memory.
Result<std::unique_ptr<SegmentProbe>> make_segment_probe(std::shared_ptr<const Model> model,
                                                         std::span<const OpId> ops, const Device& device,
                                                         ParameterPlace place = ParameterPlace::kDevice);

// All probes at once, each on a thread of its own bound to its cores: a measurement is the time from the
// common start to the last end. At least `least_runs` runs, more for up to `min_s` seconds. Cancelled before
// the first: an error.
Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline);

// Measures segments of `model` on the devices of all backends that compute, each with a probe; on shares of a
// device with one on each of them at once, so that no share is promised more than the slowest one gives.
// Supports devices of at least that many shares (most_shares()), and, for host access, accelerators that can
// read the host's memory (each is opened once, to see). Not thread-safe.
std::unique_ptr<SegmentMeasurer> make_segment_measurer(std::shared_ptr<const Model> model,
                                                       const MeasureOptions& options = {},
                                                       const MeasureConditions& conditions = {});

}  // namespace heddle
