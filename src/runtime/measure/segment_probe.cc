// Times one segment as the executor would run it: compiled and bound the same way, on a thread bound to the
// device's cores, after the rest of the model has had the caches.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "heddle/base/quantiles.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/blocking_device.h"
#include "heddle/runtime/core_wait.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/segment_measurer.h"
#include "heddle/runtime/stream_runtime.h"
#include "run/sampling.h"
#include "segment_spec.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kProbeWarmups = 2;    // the first run allocates, the second fills the branch predictors
constexpr int kProbeLeastRuns = 3;  // below this a deadline leaves no measurement
constexpr double kSure = 0.02;      // relative standard error at which the median is believed
// Beside a busy thread: each turn is longer than some turns of the scheduler.
constexpr double kTurnUs = 20'000;
constexpr int kTurns = 3;
constexpr double kMostTurnsS = 1;
constexpr size_t kLine = 64;
constexpr int64_t kMostEvictedBytes = int64_t{64} << 20;

int64_t last_level_cache_bytes() {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? std::min<int64_t>(bytes, kMostEvictedBytes) : int64_t{32} << 20;
}

// Bytes that other segments touch between two runs of this one; at most what the cache can hold.
int64_t rest_of_model_bytes(const Graph& graph, std::span<const OpId> ops, int64_t own_tensor_bytes) {
  if (ops.size() == graph.num_ops()) return 0;
  int64_t tensors = 0;
  for (const Tensor& t : graph.tensors()) tensors += t.bytes;
  std::vector<char> own(graph.num_params(), 0);
  int64_t own_params = 0;
  for (OpId op : ops) {
    for (ParamId p : graph.op(op).params) {
      if (!std::exchange(own[p.index()], 1)) own_params += graph.param(p).bytes;
    }
  }
  const int64_t rest = graph.total_param_bytes() + tensors - own_params - own_tensor_bytes;
  return std::clamp<int64_t>(rest, 0, last_level_cache_bytes());
}

// Standard error of the median of a normal sample: 1.25 sigma / sqrt(n). sigma is 1.48 times half the
// interquartile range.
bool sure(const std::vector<double>& times) {
  return 1.86 * relative_spread(times) <= kSure * std::sqrt(static_cast<double>(times.size()));
}

}  // namespace

Result<Measurement> SegmentProbe::sample(const MeasureOptions& options, const Deadline& deadline) {
  const AffinityGuard bound(cores_);
  for (; warmups_ < kProbeWarmups; ++warmups_) HEDDLE_RETURN_IF_ERROR(segment_->run(0));
  std::vector<double> times;
  CoreWait wait;
  wait.resume();
  const int64_t begin = now_ns();
  while (true) {
    const double elapsed_s = static_cast<double>(now_ns() - begin) * 1e-9;
    const auto runs = static_cast<int>(times.size());
    if (runs >= kProbeLeastRuns && elapsed_s >= options.max_s) break;
    if (runs >= options.min_runs && elapsed_s >= options.min_s && sure(times)) break;
    // The few runs before a stop would pass for a calm measurement, which is never taken again.
    if (deadline.should_stop() && runs < std::max(kProbeLeastRuns, options.min_runs))
      return cancelled_error("stopped before the segment was measured");
    if (deadline.should_stop()) break;
    prepare();
    const int64_t start = now_ns();
    HEDDLE_RETURN_IF_ERROR(run_once());
    times.push_back(blocking_ != nullptr ? blocking_->compute_us()
                                         : static_cast<double>(now_ns() - start) / 1000);
  }
  wait.pause();
  return Measurement{.median_us = median_us(times),
                     .rel_spread = std::max(relative_spread(times), wait.share()),
                     .runs = static_cast<int>(times.size())};
}

Status SegmentProbe::sample_core_taken(Measurement& alone, const Deadline& deadline) {
  const AffinityGuard bound(cores_);
  const int runs = static_cast<int>(std::ceil(kTurnUs / std::clamp(alone.median_us, 1.0, kTurnUs)));
  std::vector<double> factors;
  CoreWait wait;  // of the runs alone
  const int64_t begin = now_ns();
  for (int turn = 0; turn < kTurns && !deadline.should_stop(); ++turn) {
    const double elapsed_s = static_cast<double>(now_ns() - begin) * 1e-9;
    if (turn > 0 && elapsed_s * (turn + 1) / turn > kMostTurnsS) break;
    wait.resume();
    HEDDLE_ASSIGN_OR_RETURN(const double alone_us, mean_us(runs, deadline));
    wait.pause();
    const size_t core = static_cast<size_t>(turn) % cores_.size();
    const BusyThread other{std::span(cores_).subspan(core, 1)};
    HEDDLE_ASSIGN_OR_RETURN(const double beside_us, mean_us(runs, deadline));
    factors.push_back(beside_us / alone_us);
  }
  if (factors.empty()) return {};
  alone.core_taken = std::max(1.0, median_us(factors));
  alone.rel_spread = std::max(alone.rel_spread, wait.share());
  return {};
}

// The mean and not the median: the scheduler gives a shared core to one thread after the other, so runs shorter than
// its turns are either as fast as alone or wait for a whole turn.
Result<double> SegmentProbe::mean_us(int runs, const Deadline& deadline) {
  int64_t sum_ns = 0;
  int done = 0;
  for (; done < runs && (done == 0 || !deadline.should_stop()); ++done) {
    prepare();
    const int64_t start = now_ns();
    HEDDLE_RETURN_IF_ERROR(run_once());
    sum_ns += now_ns() - start;
  }
  return std::max(static_cast<double>(sum_ns), 1.0) / 1000 / done;
}

void SegmentProbe::prepare() {
  if (blocking_ != nullptr) return;  // caches matter only on the host
  evict();
  warm();
}

void SegmentProbe::evict() {
  if (static_cast<int64_t>(scratch_.size()) < evicted_bytes_)
    scratch_.resize(static_cast<size_t>(evicted_bytes_), 1);
  volatile unsigned char* p = scratch_.data();
  for (int64_t i = 0; i < evicted_bytes_; i += kLine) p[i] = static_cast<unsigned char>(p[i] + 1);
}

// A segment's inputs have just been written by its predecessors, so they are in the caches.
void SegmentProbe::warm() const {
  for (const TensorValue& t : inputs_) {
    volatile const std::byte* p = t.data.get();
    for (int64_t i = 0; i < t.bytes; i += kLine) static_cast<void>(p[i]);
  }
}

Result<std::unique_ptr<SegmentProbe>> SegmentProbe::make(const std::shared_ptr<const Model>& model,
                                                         std::span<const OpId> ops, const Device& device,
                                                         bool host_access) {
  std::unique_ptr<SegmentProbe> probe(new SegmentProbe);
  HEDDLE_ASSIGN_OR_RETURN(probe->device_, open_device(device));
  if (host_access && probe->device_->stream_runtime() == nullptr)
    return unsupported("device '" + device.name +
                       "' is no accelerator whose parameters could be in host memory");
  probe->cores_ = probe->device_->worker_cores();
  HEDDLE_RETURN_IF_ERROR(check_cores(probe->cores_, device.name));
  WideValues wide;
  if (probe->device_->border_type() != DType::kF32)
    wide = find_backend(device.backend)->wide_values(*model->graph());
  Status bound = probe->bind(*model->graph(), ops, model, host_access, wide);
  if (!bound.ok())
    return std::move(bound).error().with_context("a segment of " + std::to_string(ops.size()) +
                                                 " ops on device '" + device.name + "'");
  return probe;
}

Status SegmentProbe::bind(const Graph& graph, std::span<const OpId> ops,
                          const std::shared_ptr<const Model>& model, bool host_access,
                          const WideValues& wide) {
  HEDDLE_ASSIGN_OR_RETURN(OpsSegment segment,
                          segment_of_ops(model, ops, "measured", device_->border_type(), wide));
  segment.spec.host_access = host_access;
  int64_t own_bytes = 0;
  const auto add = [&](std::span<const SegmentTensor> tensors,
                       std::vector<TensorValue>& values) -> Result<std::vector<TensorView>> {
    std::vector<TensorView> views;
    for (const SegmentTensor& tensor : tensors) {
      HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(tensor.dtype, tensor.shape));
      own_bytes += value.bytes;
      views.push_back(value.view());
      values.push_back(std::move(value));
    }
    return views;
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, add(segment.spec.inputs, inputs_));
  HEDDLE_ASSIGN_OR_RETURN(const auto outputs, add(segment.spec.outputs, outputs_));
  for (size_t i = 0; i < inputs.size(); ++i) fill_random(inputs[i], i + 1);
  HEDDLE_ASSIGN_OR_RETURN(segment_, device_->compile(segment.spec, 1));
  if (device_->stream_runtime() != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(auto wrapped,
                            BlockingSegment::make(*device_, std::move(segment_), 1, host_access));
    blocking_ = wrapped.get();
    segment_ = std::move(wrapped);
  }
  HEDDLE_RETURN_IF_ERROR(segment_->bind(0, inputs, outputs));
  evicted_bytes_ = rest_of_model_bytes(graph, ops, own_bytes);
  return blocking_ != nullptr ? blocking_->copy_inputs(0) : Status();
}

}  // namespace heddle
