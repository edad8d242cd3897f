// Times one segment as the executor would run it: compiled and bound the same way, on a thread bound to the
// device's cores, after the rest of the model has had the caches.
#include "heddle/runtime/openvino_measurer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "affinity.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/sampling.h"
#include "inputs.h"
#include "mailbox.h"
#include "program.h"

namespace heddle {
namespace {

constexpr int kWarmups = 2;      // the first run allocates, the second fills the branch predictors
constexpr int kLeastRuns = 3;    // below this a deadline leaves no measurement
constexpr int kSupport = 5;      // runs that must agree with the fastest ...
constexpr double kAgree = 1.03;  // ... within 3 %, before the quiet time is believed early
constexpr size_t kLine = 64;
constexpr int64_t kMostEvictedBytes = int64_t{64} << 20;

int64_t last_level_cache_bytes() {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? std::min<int64_t>(bytes, kMostEvictedBytes) : int64_t{32} << 20;
}

class OpenVinoMeasurer final : public SegmentMeasurer {
 public:
  OpenVinoMeasurer(std::shared_ptr<const Model> model, const MeasureOptions& options)
      : model_(std::move(model)), options_(options) {}

  bool supports(const Device& device) const override {
    const Backend* backend = find_backend("openvino");
    if (model_ == nullptr || backend == nullptr || !backend->supports(device)) return false;
    return check_cores(device.cores, device.name).ok();
  }

  Result<Measurement> measure(std::span<const OpId> finest_ops, const Device& device,
                              const Deadline& deadline) override {
    HEDDLE_ASSIGN_OR_RETURN(auto opened, open_device(device));
    HEDDLE_RETURN_IF_ERROR(check_cores(opened->worker_cores(), device.name));
    HEDDLE_ASSIGN_OR_RETURN(const Bench bench, prepare(finest_ops, *opened, device));
    const AffinityGuard bound(opened->worker_cores());
    return sample(bench, deadline);
  }

 private:
  struct Bench {
    std::unique_ptr<CompiledSegment> segment;
    std::vector<TensorValue> inputs, outputs;
    int64_t evicted_bytes = 0;
  };

  Result<Bench> prepare(std::span<const OpId> ops, RuntimeDevice& opened, const Device& device) {
    const Graph& graph = *model_->graph();
    std::vector<int32_t> owner(graph.num_ops(), -1);
    for (OpId op : ops) {
      if (!op.valid() || op.index() >= graph.num_ops())
        return Error(Code::kInternal, "a segment to be measured names ops that the model does not have");
      owner[op.index()] = 0;
    }
    const Segment segment{.name = "measured", .ops = {ops.begin(), ops.end()}, .device = {}, .lane = 0};
    const SegmentPorts ports = segment_ports(graph, segment, owner, 0);
    SegmentSpec spec{.name = segment.name,
                     .model = model_,
                     .finest_ops = segment.ops,
                     .inputs = {},
                     .outputs = {},
                     .cost_us = 0};
    Bench bench;
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
    HEDDLE_RETURN_IF_ERROR(add(ports.inputs, spec.inputs, bench.inputs));
    HEDDLE_RETURN_IF_ERROR(add(ports.outputs, spec.outputs, bench.outputs));
    for (size_t i = 0; i < bench.inputs.size(); ++i) fill_random(bench.inputs[i].view(), i + 1);
    auto compiled = opened.compile(spec, 1);
    if (!compiled.ok())
      return std::move(compiled).error().with_context("a segment of " + std::to_string(ops.size()) +
                                                      " ops on device '" + device.name + "'");
    bench.segment = std::move(compiled).value();
    std::vector<TensorView> inputs, outputs;
    for (const auto& v : bench.inputs) inputs.push_back(v.view());
    for (const auto& v : bench.outputs) outputs.push_back(v.view());
    HEDDLE_RETURN_IF_ERROR(bench.segment->bind(0, inputs, outputs));
    bench.evicted_bytes = rest_of_model_bytes(ops, own_bytes);
    return bench;
  }

  // What other segments touch between two runs of this one, as far as the cache could hold it.
  int64_t rest_of_model_bytes(std::span<const OpId> ops, int64_t own_tensor_bytes) const {
    const Graph& graph = *model_->graph();
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

  void evict(int64_t bytes) {
    if (bytes <= 0) return;
    if (static_cast<int64_t>(scratch_.size()) < bytes) scratch_.resize(static_cast<size_t>(bytes), 1);
    volatile unsigned char* p = scratch_.data();
    for (int64_t i = 0; i < bytes; i += kLine) p[i] = static_cast<unsigned char>(p[i] + 1);
  }

  // A segment's inputs have just been written by its predecessors.
  static void warm(const std::vector<TensorValue>& tensors) {
    for (const TensorValue& t : tensors) {
      volatile const std::byte* p = t.data.get();
      for (int64_t i = 0; i < t.bytes; i += kLine) static_cast<void>(p[i]);
    }
  }

  Result<Measurement> sample(const Bench& bench, const Deadline& deadline) {
    for (int i = 0; i < kWarmups; ++i) HEDDLE_RETURN_IF_ERROR(bench.segment->run(0));
    std::vector<double> times;
    double fastest = 0;
    const int64_t begin = now_ns();
    while (true) {
      const double elapsed_s = static_cast<double>(now_ns() - begin) * 1e-9;
      const auto runs = static_cast<int>(times.size());
      if (deadline.should_stop() && runs < kLeastRuns)
        return Error(Code::kCancelled, "stopped before the segment was measured");
      if (runs >= kLeastRuns && (deadline.should_stop() || elapsed_s >= options_.max_s)) break;
      if (runs >= options_.min_runs && elapsed_s >= options_.min_s && supported(times, fastest)) break;
      evict(bench.evicted_bytes);
      warm(bench.inputs);
      const int64_t start = now_ns();
      HEDDLE_RETURN_IF_ERROR(bench.segment->run(0));
      times.push_back(static_cast<double>(now_ns() - start) / 1000);
      fastest = runs == 0 ? times.back() : std::min(fastest, times.back());
    }
    return Measurement{.median_us = quiet_time_us(times),
                       .rel_spread = relative_spread(times),
                       .runs = static_cast<int>(times.size())};
  }

  static bool supported(const std::vector<double>& times, double fastest) {
    return std::count_if(times.begin(), times.end(), [&](double t) { return t <= fastest * kAgree; }) >=
           kSupport;
  }

  std::shared_ptr<const Model> model_;
  MeasureOptions options_;
  std::vector<unsigned char> scratch_;
};

}  // namespace

std::unique_ptr<SegmentMeasurer> make_openvino_measurer(std::shared_ptr<const Model> model,
                                                        const MeasureOptions& options) {
  return std::make_unique<OpenVinoMeasurer>(std::move(model), options);
}

}  // namespace heddle
