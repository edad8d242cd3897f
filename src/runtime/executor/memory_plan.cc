#include "memory_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "heddle/base/units.h"
#include "heddle/runtime/backend.h"

namespace heddle {
namespace {

constexpr size_t kMaxTasks = 16'384;  // 32 MiB of reachability bits

class TaskReach {
 public:
  explicit TaskReach(const Program& program)
      : words_((program.tasks.size() + 63) / 64), bits_(words_ * program.tasks.size(), 0) {
    // Edges lead forward in the plan's order.
    for (size_t t = program.tasks.size(); t-- > 0;) {
      uint64_t* row = bits_.data() + t * words_;
      for (int32_t next : program.successors[t]) {
        const uint64_t* other = bits_.data() + static_cast<size_t>(next) * words_;
        for (size_t w = 0; w < words_; ++w) row[w] |= other[w];
        row[static_cast<size_t>(next) / 64] |= uint64_t{1} << (next % 64);
      }
    }
  }
  bool reaches(int32_t a, int32_t b) const {
    return ((bits_[static_cast<size_t>(a) * words_ + static_cast<size_t>(b) / 64] >> (b % 64)) & 1) != 0;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

struct Use {
  int32_t producer = -1;  // task
  DeviceId device;
  std::vector<int32_t> readers;  // tasks
  bool fixed = false;            // a model input or output
};

// Collects the producer and the readers of each tensor in each memory.
class Uses {
 public:
  Uses(const Graph& graph, const Plan& plan, const Program& program, const std::vector<SegmentPorts>& ports,
       const std::vector<int32_t>& memory_of)
      : plan_(plan), program_(program), ports_(ports), memory_of_(memory_of) {
    tensors_ = graph.num_tensors();
    const int32_t most = *std::max_element(memory_of.begin(), memory_of.end());
    uses_.resize(tensors_ * (static_cast<size_t>(most) + 1));
    for (size_t i = 0; i < program.tasks.size(); ++i) add(static_cast<int32_t>(i));
    // A message may arrive as soon as the request starts.
    for (const Message& m : program.receives) {
      if (m.tensor < 0) continue;
      Use& received = use(TensorId(m.tensor), m.memory);
      received.fixed = true;
      if (m.memory != 0)
        received.device = DeviceId(
            static_cast<size_t>(std::find(memory_of.begin(), memory_of.end(), m.memory) - memory_of.begin()));
    }
    for (TensorId t : graph.inputs()) uses_[t.index()].fixed = true;
    for (TensorId t : graph.outputs()) uses_[t.index()].fixed = true;
  }
  std::vector<Use> take() { return std::move(uses_); }

 private:
  int32_t memory(DeviceId device) const { return memory_of_[device.index()]; }
  Use& use(TensorId t, int32_t memory) { return uses_[static_cast<size_t>(memory) * tensors_ + t.index()]; }
  void wrote(Use& use, int32_t task, DeviceId device) {
    use.producer = task;
    use.device = device;
  }

  void add(int32_t task) {
    const Task& own = program_.tasks[static_cast<size_t>(task)];
    if (own.action == Action::kSend) {
      const Message& message = program_.sends[static_cast<size_t>(own.message)];
      use(TensorId(message.tensor), message.memory).readers.push_back(task);
      return;
    }
    if (own.enqueue == Enqueue::kUpload || own.enqueue == Enqueue::kFetch) {
      const DeviceId device(own.device);
      const int32_t there = memory(device);
      const bool up = own.enqueue == Enqueue::kUpload;
      use(TensorId(own.tensor), up ? 0 : there).readers.push_back(task);
      wrote(use(TensorId(own.tensor), up ? there : 0), task, up ? device : DeviceId());
      return;
    }
    if (own.plan_step < 0 || own.arrival) return;
    const Step& step = plan_.steps[static_cast<size_t>(own.plan_step)];
    if (step.kind == StepKind::kTransfer) {
      use(step.tensor, memory(step.from)).readers.push_back(task);
      if (own.enqueue == Enqueue::kTransfer) wrote(use(step.tensor, memory(step.to)), task, step.to);
    }
    if (step.kind != StepKind::kRun) return;
    const DeviceId device = plan_.segments[step.segment.index()].device;
    const SegmentPorts& ports = ports_[step.segment.index()];
    for (TensorId t : ports.inputs) use(t, memory(device)).readers.push_back(task);
    for (TensorId t : ports.outputs) wrote(use(t, memory(device)), task, device);
  }

  const Plan& plan_;
  const Program& program_;
  const std::vector<SegmentPorts>& ports_;
  const std::vector<int32_t>& memory_of_;
  size_t tensors_ = 0;
  std::vector<Use> uses_;
};

}  // namespace

int64_t MemoryPlan::total_bytes() const {
  return std::accumulate(buffers.begin(), buffers.end(), int64_t{0},
                         [](int64_t sum, const PlannedBuffer& b) { return sum + b.bytes; });
}

MemoryPlan plan_memory(const Graph& graph, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports, const std::vector<int32_t>& memory_of) {
  const std::vector<Use> uses = Uses(graph, plan, program, ports, memory_of).take();
  const bool share = program.tasks.size() <= kMaxTasks;
  const TaskReach reach(share ? program : Program{});
  std::vector<size_t> order;
  for (size_t t = 0; t < uses.size(); ++t) {
    if (uses[t].fixed || uses[t].producer >= 0) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return uses[a].producer < uses[b].producer; });

  MemoryPlan result;
  result.tensors = graph.num_tensors();
  result.buffer.assign(uses.size(), -1);
  std::vector<int32_t> tenant;  // the last tensor in each buffer; -1: not shareable
  const auto free_for = [&](int32_t last, const Use& use) {
    const Use& before = uses[static_cast<size_t>(last)];
    if (before.readers.empty()) return reach.reaches(before.producer, use.producer);
    return std::all_of(before.readers.begin(), before.readers.end(),
                       [&](int32_t r) { return reach.reaches(r, use.producer); });
  };
  for (size_t t : order) {
    const Use& use = uses[t];
    const int64_t bytes = graph.tensors()[t % result.tensors].bytes;
    const auto memory = static_cast<int32_t>(t / result.tensors);
    int32_t best = -1;
    for (size_t b = 0; share && !use.fixed && b < tenant.size(); ++b) {
      if (tenant[b] < 0 || result.buffers[b].memory != memory || !free_for(tenant[b], use)) continue;
      // Take the smallest buffer that fits, otherwise the largest one, which grows.
      const int64_t have = result.buffers[b].bytes;
      const int64_t best_has = best < 0 ? -1 : result.buffers[static_cast<size_t>(best)].bytes;
      const bool better = best < 0 || (have >= bytes ? best_has < bytes || have < best_has
                                                     : best_has < bytes && have > best_has);
      if (better) best = static_cast<int32_t>(b);
    }
    if (best < 0) {
      best = static_cast<int32_t>(tenant.size());
      tenant.push_back(-1);
      result.buffers.push_back({.bytes = 0, .memory = memory, .device = use.device});
    }
    const auto b = static_cast<size_t>(best);
    tenant[b] = use.fixed ? -1 : static_cast<int32_t>(t);
    result.buffers[b].bytes = std::max(result.buffers[b].bytes, bytes);
    result.buffer[t] = best;
  }
  return result;
}

Status check_fit(const Problem& problem, const Plan& plan, const Timeline& timeline) {
  for (const Segment& segment : plan.segments) {
    const Device& device = problem.cluster->device(segment.device);
    const Backend* backend = find_backend(device.backend);
    if (backend == nullptr || !backend->computes()) continue;
    const int pool = problem.cluster->memory_pool(segment.device);
    const int64_t limit = problem.cluster->memory_pool_bytes(pool);
    const int64_t peak = timeline.peak_memory_bytes[static_cast<size_t>(pool)];
    if (limit == 0 || peak <= limit) continue;
    return infeasible("device '" + device.name + "' has " + format_bytes(limit) +
                      " of memory, but the plan's parameters and tensors there need " + format_bytes(peak) +
                      "; plan again for this cluster, which splits the model where it must");
  }
  return {};
}

Status check_use(const Cluster& cluster, DeviceId device, std::span<const PoolUse> pools) {
  const int pool = cluster.memory_pool(device);
  const PoolUse& use = pools[static_cast<size_t>(pool)];
  const int64_t limit = cluster.memory_pool_bytes(pool);
  if (limit == 0 || use.param_bytes + use.tensor_bytes <= limit) return {};
  return infeasible("device '" + cluster.device(device).name + "' has " + std::to_string(limit) +
                    " bytes of memory, but parameters (" + std::to_string(use.param_bytes) +
                    ") and tensors (" + std::to_string(use.tensor_bytes) +
                    " for the requests in flight) need more; reduce --in-flight or use another plan");
}

}  // namespace heddle
