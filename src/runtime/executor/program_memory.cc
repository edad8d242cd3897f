#include "program_memory.h"

#include <algorithm>
#include <map>
#include <utility>

namespace heddle {
namespace {

class Accounting {
 public:
  Accounting(const ProgramInput& in, const std::unordered_map<int32_t, int32_t>& run_task, Program& program)
      : in_(in),
        graph_(*in.problem.graph),
        cluster_(*in.problem.cluster),
        run_task_(run_task),
        program_(program) {}

  void run() {
    std::vector<std::pair<int32_t, int32_t>> takes, releases;
    const auto take = [&](int32_t task, int32_t s) {
      if (s >= 0) takes.emplace_back(task, s);
    };
    const auto release = [&](int32_t task, int32_t s) {
      if (s >= 0) releases.emplace_back(task, s);
    };
    std::map<int32_t, int32_t> first_take;
    for (size_t i = 0; i < program_.tasks.size(); ++i) {
      const auto task = static_cast<int32_t>(i);
      if (program_.tasks[i].plan_step < 0) continue;
      const Step& s = step(task);
      if (s.kind == StepKind::kTransfer) {
        const int32_t arrives = stay(s.tensor, s.to);
        const bool fresh = arrives >= 0 && first_take.emplace(arrives, task).second;
        if (fresh) take(task, arrives);
        release(task, stay(s.tensor, s.from));
      } else if (s.kind == StepKind::kRun) {
        const DeviceId device = segment(s.segment).device;
        const SegmentPorts& ports = in_.ports[s.segment.index()];
        for (TensorId t : ports.outputs) {
          const int32_t made = stay(t, device);
          if (made >= 0 && first_take.emplace(made, task).second) take(task, made);
        }
        for (TensorId t : ports.inputs) {
          if (graph_.tensor(t).producer.valid()) release(task, stay(t, device));
        }
      }
    }
    const size_t n = program_.tasks.size();
    program_.takes = Rows::from_pairs(n, std::move(takes));
    program_.releases = Rows::from_pairs(n, std::move(releases));
    for (int32_t s : program_.releases.items) ++program_.stays[static_cast<size_t>(s)].readers;
    // A tensor without readers is a model output; it stays until the request ends.
    for (size_t s = 0; s < program_.stays.size(); ++s) {
      if (program_.stays[s].readers > 0) continue;
      program_.stays[s].readers = 1;
      program_.held.push_back(static_cast<int32_t>(s));
    }
    for (TensorId t : graph_.outputs()) hold_output(t);
  }

 private:
  const Step& step(int32_t task) const {
    return in_.plan.steps[static_cast<size_t>(program_.tasks[static_cast<size_t>(task)].plan_step)];
  }
  const Segment& segment(SegmentId id) const { return in_.plan.segments[id.index()]; }
  static uint64_t key(int32_t a, int32_t b) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b);
  }

  // True if memory is limited and no real allocation represents the tensor.
  bool accounted(DeviceId device) const {
    if (in_.ranks != nullptr && in_.ranks->rank_of_device[device.index()] != in_.ranks->self) return false;
    return !in_.moves_data[device.index()] && cluster_.memory_pool_bytes(cluster_.memory_pool(device)) > 0;
  }

  int32_t stay(TensorId t, DeviceId device) {
    if (!accounted(device)) return -1;
    const int pool = cluster_.memory_pool(device);
    const auto [it, fresh] =
        stay_of_.emplace(key(t.value, pool), static_cast<int32_t>(program_.stays.size()));
    if (fresh) program_.stays.push_back({.bytes = graph_.tensor(t).bytes, .pool = pool, .readers = 0});
    return it->second;
  }

  void hold_output(TensorId t) {
    const OpId producer = graph_.tensor(t).producer;
    if (!producer.valid()) return;
    for (const auto& [seg, task] : run_task_) {
      const Segment& s = in_.plan.segments[static_cast<size_t>(seg)];
      if (!std::binary_search(s.ops.begin(), s.ops.end(), producer)) continue;
      const int32_t kept = stay(t, s.device);
      if (kept < 0 || std::find(program_.held.begin(), program_.held.end(), kept) != program_.held.end())
        return;
      ++program_.stays[static_cast<size_t>(kept)].readers;
      program_.held.push_back(kept);
      return;
    }
  }

  const ProgramInput& in_;
  const Graph& graph_;
  const Cluster& cluster_;
  const std::unordered_map<int32_t, int32_t>& run_task_;  // segment -> task
  Program& program_;
  std::unordered_map<uint64_t, int32_t> stay_of_;  // (tensor, pool) -> stay
};

}  // namespace

void account_memory(const ProgramInput& input, const std::unordered_map<int32_t, int32_t>& run_task,
                    Program& program) {
  Accounting(input, run_task, program).run();
}

}  // namespace heddle
