#include "memory_plan.h"

#include <algorithm>
#include <numeric>

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

std::vector<Use> uses_of(const Problem& problem, const Plan& plan, const Program& program,
                         const std::vector<SegmentPorts>& ports) {
  std::vector<Use> uses(problem.graph->num_tensors());
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const Task& own = program.tasks[i];
    if (own.action == Action::kSend) {
      const Message& message = program.sends[static_cast<size_t>(own.message)];
      uses[static_cast<size_t>(message.tensor)].readers.push_back(static_cast<int32_t>(i));
      continue;
    }
    if (own.plan_step < 0 || own.arrival) continue;
    const Step& step = plan.steps[static_cast<size_t>(program.tasks[i].plan_step)];
    const auto task = static_cast<int32_t>(i);
    if (step.kind == StepKind::kTransfer) uses[step.tensor.index()].readers.push_back(task);
    if (step.kind != StepKind::kRun) continue;
    for (TensorId t : ports[step.segment.index()].inputs) uses[t.index()].readers.push_back(task);
    for (TensorId t : ports[step.segment.index()].outputs) {
      uses[t.index()].producer = task;
      uses[t.index()].device = plan.segments[step.segment.index()].device;
    }
  }
  // What comes from another rank may come as soon as the request starts.
  for (const Message& m : program.receives) {
    if (m.tensor >= 0) uses[static_cast<size_t>(m.tensor)].fixed = true;
  }
  for (TensorId t : problem.graph->inputs()) uses[t.index()].fixed = true;
  for (TensorId t : problem.graph->outputs()) uses[t.index()].fixed = true;
  return uses;
}

}  // namespace

int64_t MemoryPlan::total_bytes() const {
  return std::accumulate(buffer_bytes.begin(), buffer_bytes.end(), int64_t{0});
}

MemoryPlan plan_memory(const Problem& problem, const Plan& plan, const Program& program,
                       const std::vector<SegmentPorts>& ports) {
  const Graph& graph = *problem.graph;
  const std::vector<Use> uses = uses_of(problem, plan, program, ports);
  const bool share = program.tasks.size() <= kMaxTasks;
  const TaskReach reach(share ? program : Program{});
  std::vector<size_t> order;
  for (size_t t = 0; t < uses.size(); ++t) {
    if (uses[t].fixed || uses[t].producer >= 0) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return uses[a].producer < uses[b].producer; });

  MemoryPlan result;
  result.buffer.assign(graph.num_tensors(), -1);
  std::vector<int32_t> tenant;  // the last tensor in each buffer; -1: not to be shared
  const auto free_for = [&](int32_t last, const Use& use) {
    const Use& before = uses[static_cast<size_t>(last)];
    if (before.readers.empty()) return reach.reaches(before.producer, use.producer);
    return std::all_of(before.readers.begin(), before.readers.end(),
                       [&](int32_t r) { return reach.reaches(r, use.producer); });
  };
  for (size_t t : order) {
    const Use& use = uses[t];
    const int64_t bytes = graph.tensors()[t].bytes;
    int32_t best = -1;
    for (size_t b = 0; share && !use.fixed && b < tenant.size(); ++b) {
      if (tenant[b] < 0 || !free_for(tenant[b], use)) continue;
      // The tightest that fits, else the largest, which grows.
      const int64_t have = result.buffer_bytes[b];
      const int64_t best_has = best < 0 ? -1 : result.buffer_bytes[static_cast<size_t>(best)];
      const bool better = best < 0 || (have >= bytes ? best_has < bytes || have < best_has
                                                     : best_has < bytes && have > best_has);
      if (better) best = static_cast<int32_t>(b);
    }
    if (best < 0) {
      best = static_cast<int32_t>(tenant.size());
      tenant.push_back(-1);
      result.buffer_bytes.push_back(0);
      result.buffer_device.push_back(use.device);
    }
    const auto b = static_cast<size_t>(best);
    tenant[b] = use.fixed ? -1 : static_cast<int32_t>(t);
    result.buffer_bytes[b] = std::max(result.buffer_bytes[b], bytes);
    result.buffer[t] = best;
  }
  return result;
}

}  // namespace heddle
