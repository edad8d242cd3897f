// Times one segment as the executor would run it: compiled and bound the same way, on a thread bound to the
// device's cores, after the rest of the model has had the caches.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "executor/program.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/blocking_device.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/sampling.h"
#include "heddle/runtime/segment_measurer.h"
#include "heddle/runtime/stream_runtime.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kProbeWarmups = 2;    // the first run allocates, the second fills the branch predictors
constexpr int kProbeLeastRuns = 3;  // below this a deadline leaves no measurement
constexpr double kSure = 0.02;      // relative standard error at which the median is believed
constexpr size_t kLine = 64;
constexpr int64_t kMostEvictedBytes = int64_t{64} << 20;

int64_t last_level_cache_bytes() {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? std::min<int64_t>(bytes, kMostEvictedBytes) : int64_t{32} << 20;
}

// What other segments touch between two runs of this one, as far as the cache could hold it.
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

// A segment compiled and bound, and the data that it works on.
class Probe final : public SegmentProbe {
 public:
  // `device` is kept where the segment is an accelerator's, `blocking` is that segment then.
  Probe(std::unique_ptr<RuntimeDevice> device, BlockingSegment* blocking,
        std::unique_ptr<CompiledSegment> segment, std::vector<TensorValue> inputs,
        std::vector<TensorValue> outputs, int64_t evicted_bytes)
      : cores_(device->worker_cores()),
        device_(std::move(device)),
        blocking_(blocking),
        segment_(std::move(segment)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        evicted_bytes_(evicted_bytes) {}

  Result<Measurement> sample(const MeasureOptions& options, const Deadline& deadline) override {
    const AffinityGuard bound(cores_);
    for (; warmups_ < kProbeWarmups; ++warmups_) HEDDLE_RETURN_IF_ERROR(segment_->run(0));
    std::vector<double> times;
    const int64_t begin = now_ns();
    while (true) {
      const double elapsed_s = static_cast<double>(now_ns() - begin) * 1e-9;
      const auto runs = static_cast<int>(times.size());
      if (deadline.should_stop() && runs < kProbeLeastRuns)
        return Error(Code::kCancelled, "stopped before the segment was measured");
      if (runs >= kProbeLeastRuns && (deadline.should_stop() || elapsed_s >= options.max_s)) break;
      if (runs >= options.min_runs && elapsed_s >= options.min_s && sure(times)) break;
      prepare();
      const int64_t start = now_ns();
      HEDDLE_RETURN_IF_ERROR(run_once());
      times.push_back(blocking_ != nullptr ? blocking_->compute_us()
                                           : static_cast<double>(now_ns() - start) / 1000);
    }
    return Measurement{.median_us = median_us(times),
                       .rel_spread = relative_spread(times),
                       .runs = static_cast<int>(times.size())};
  }

  void prepare() override {
    if (blocking_ != nullptr) return;  // these are the host's caches
    evict();
    warm();
  }
  // An accelerator's inputs stay where the warm-up has copied them.
  Status run_once() override { return blocking_ != nullptr ? blocking_->compute(0) : segment_->run(0); }
  std::span<const int> cores() const override { return cores_; }

 private:
  void evict() {
    if (evicted_bytes_ <= 0) return;
    if (static_cast<int64_t>(scratch_.size()) < evicted_bytes_)
      scratch_.resize(static_cast<size_t>(evicted_bytes_), 1);
    volatile unsigned char* p = scratch_.data();
    for (int64_t i = 0; i < evicted_bytes_; i += kLine) p[i] = static_cast<unsigned char>(p[i] + 1);
  }

  // A segment's inputs have just been written by its predecessors.
  void warm() {
    for (const TensorValue& t : inputs_) {
      volatile const std::byte* p = t.data.get();
      for (int64_t i = 0; i < t.bytes; i += kLine) static_cast<void>(p[i]);
    }
  }

  // The standard error of the median of a normal sample is 1.25 sigma / sqrt(n); sigma is 1.48 times half the
  // interquartile range.
  static bool sure(const std::vector<double>& times) {
    return 1.86 * relative_spread(times) <= kSure * std::sqrt(static_cast<double>(times.size()));
  }

  std::vector<int> cores_;
  std::unique_ptr<RuntimeDevice> device_;
  BlockingSegment* blocking_;
  std::unique_ptr<CompiledSegment> segment_;
  std::vector<TensorValue> inputs_, outputs_;
  int64_t evicted_bytes_ = 0;
  int warmups_ = 0;
  std::vector<unsigned char> scratch_;
};

}  // namespace

Result<std::unique_ptr<SegmentProbe>> make_segment_probe(std::shared_ptr<const Model> model,
                                                         std::span<const OpId> ops, const Device& device,
                                                         ParameterPlace place) {
  HEDDLE_ASSIGN_OR_RETURN(auto opened, open_device(device));
  if (place == ParameterPlace::kHost && opened->stream_runtime() == nullptr)
    return Error(Code::kUnsupported,
                 "device '" + device.name + "' is no accelerator whose parameters could be in host memory");
  HEDDLE_RETURN_IF_ERROR(check_cores(opened->worker_cores(), device.name));
  const Graph& graph = *model->graph();
  std::vector<int32_t> owner(graph.num_ops(), -1);
  for (OpId op : ops) {
    if (!op.valid() || op.index() >= graph.num_ops())
      return Error(Code::kInternal, "a segment to be measured names ops that the model does not have");
    owner[op.index()] = 0;
  }
  const Segment segment{.name = "measured", .ops = {ops.begin(), ops.end()}, .device = {}, .lane = 0};
  const SegmentPorts ports = segment_ports(graph, segment, owner, 0);
  SegmentSpec spec{.name = segment.name,
                   .model = model,
                   .finest_ops = segment.ops,
                   .inputs = {},
                   .outputs = {},
                   .cost_us = 0,
                   .host_access = place == ParameterPlace::kHost};
  std::vector<TensorValue> inputs, outputs;
  int64_t own_bytes = 0;
  const auto add = [&](std::span<const TensorId> tensors, std::vector<SegmentTensor>& specs,
                       std::vector<TensorValue>& values) -> Status {
    for (TensorId t : tensors) {
      const Tensor& tensor = graph.tensor(t);
      specs.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
      HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(tensor.dtype, tensor.shape));
      own_bytes += value.bytes;
      values.push_back(std::move(value));
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(add(ports.inputs, spec.inputs, inputs));
  HEDDLE_RETURN_IF_ERROR(add(ports.outputs, spec.outputs, outputs));
  for (size_t i = 0; i < inputs.size(); ++i) fill_random(inputs[i].view(), i + 1);
  auto compiled = opened->compile(spec, 1);
  if (!compiled.ok())
    return std::move(compiled).error().with_context("a segment of " + std::to_string(ops.size()) +
                                                    " ops on device '" + device.name + "'");
  std::unique_ptr<CompiledSegment> segment_code = std::move(compiled).value();
  BlockingSegment* blocking = nullptr;
  if (opened->stream_runtime() != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(auto wrapped, BlockingSegment::make(*opened, std::move(segment_code), 1, place));
    blocking = wrapped.get();
    segment_code = std::move(wrapped);
  }
  std::vector<TensorView> input_views, output_views;
  for (const auto& v : inputs) input_views.push_back(v.view());
  for (const auto& v : outputs) output_views.push_back(v.view());
  HEDDLE_RETURN_IF_ERROR(segment_code->bind(0, input_views, output_views));
  const int64_t evicted = rest_of_model_bytes(graph, ops, own_bytes);
  if (blocking != nullptr) HEDDLE_RETURN_IF_ERROR(blocking->copy_inputs(0));
  return std::unique_ptr<SegmentProbe>(std::make_unique<Probe>(
      std::move(opened), blocking, std::move(segment_code), std::move(inputs), std::move(outputs), evicted));
}

}  // namespace heddle
