// Parts of programs: rows of numbers, segments' tensors, what tasks wait for, and tensors in limited memory.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "program.h"

namespace heddle {

Rows Rows::from_pairs(size_t rows, std::vector<std::pair<int32_t, int32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Rows result;
  result.begin.assign(rows + 1, 0);
  result.items.reserve(pairs.size());
  for (const auto& [row, item] : pairs) {
    ++result.begin[static_cast<size_t>(row) + 1];
    result.items.push_back(item);
  }
  for (size_t i = 0; i < rows; ++i) result.begin[i + 1] += result.begin[i];
  return result;
}

std::vector<std::vector<int32_t>> ops_to_segments(const Problem& problem, const Plan& plan) {
  std::vector<std::vector<int32_t>> owner(plan.lane_shares.size(),
                                          std::vector<int32_t>(problem.graph->num_ops(), -1));
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    for (OpId op : plan.segments[s].ops)
      owner[static_cast<size_t>(plan.segments[s].lane)][op.index()] = static_cast<int32_t>(s);
  }
  return owner;
}

SegmentPorts segment_ports(const Graph& graph, const Segment& segment, std::span<const int32_t> op_segment,
                           int32_t self) {
  SegmentPorts ports;
  std::vector<TensorId> model_outputs(graph.outputs().begin(), graph.outputs().end());
  std::sort(model_outputs.begin(), model_outputs.end());
  for (OpId op : segment.ops) {
    for (TensorId t : graph.op(op).inputs) {
      const OpId producer = graph.tensor(t).producer;
      if (!producer.valid() || op_segment[producer.index()] != self) ports.inputs.push_back(t);
    }
    for (TensorId t : graph.op(op).outputs) {
      const auto& readers = graph.tensor(t).consumers;
      const bool leaves =
          std::any_of(readers.begin(), readers.end(), [&](OpId r) { return op_segment[r.index()] != self; });
      if (leaves || std::binary_search(model_outputs.begin(), model_outputs.end(), t))
        ports.outputs.push_back(t);
    }
  }
  for (auto* list : {&ports.inputs, &ports.outputs}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return ports;
}

// Successors of an enqueueing task wait for its event. A blocking task has itself waited for its
// predecessors. An instant task passes on its predecessors' events.
Rows waits_of(const std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<std::pair<int32_t, int32_t>> backwards;
  for (const auto& [from, to] : edges) backwards.emplace_back(to, from);
  const Rows before = Rows::from_pairs(tasks.size(), std::move(backwards));
  std::vector<std::vector<int32_t>> handed_on(tasks.size());
  std::vector<std::pair<int32_t, int32_t>> waits;
  for (size_t t = 0; t < tasks.size(); ++t) {
    std::vector<int32_t> own;
    for (const int32_t p : before[t]) {
      if (tasks[static_cast<size_t>(p)].enqueue != Enqueue::kNothing) {
        own.push_back(p);
      } else {
        const auto& further = handed_on[static_cast<size_t>(p)];
        own.insert(own.end(), further.begin(), further.end());
      }
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const int32_t p : own) waits.emplace_back(static_cast<int32_t>(t), p);
    if (tasks[t].enqueue == Enqueue::kNothing && tasks[t].action == Action::kInstant)
      handed_on[t] = std::move(own);
  }
  return Rows::from_pairs(tasks.size(), std::move(waits));
}

void mark_spins(std::vector<Task>& tasks, const std::vector<std::pair<int32_t, int32_t>>& uses,
                int32_t resources, size_t seats) {
  std::vector<int32_t> last(static_cast<size_t>(resources), -1);
  std::vector<int32_t> previous(seats, -1);
  for (size_t i = 0; i < uses.size();) {
    const int32_t id = uses[i].first;
    const Task& task = tasks[static_cast<size_t>(id)];
    const bool worker = task.action == Action::kBlocking;
    const int32_t before = worker ? previous[static_cast<size_t>(task.worker)] : -1;
    bool alone = worker && before >= 0;
    for (; i < uses.size() && uses[i].first == id; ++i) {
      int32_t& holder = last[static_cast<size_t>(uses[i].second)];
      alone = alone && holder == before;
      holder = id;
    }
    if (alone) tasks[static_cast<size_t>(before)].spin_after = true;
    if (worker) previous[static_cast<size_t>(task.worker)] = id;
  }
}

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
        const int32_t arrives = residency(s.tensor, s.to);
        const bool fresh = arrives >= 0 && first_take.emplace(arrives, task).second;
        if (fresh) take(task, arrives);
        release(task, residency(s.tensor, s.from));
      } else if (s.kind == StepKind::kRun) {
        const DeviceId device = segment(s.segment).device;
        const SegmentPorts& ports = in_.ports[s.segment.index()];
        for (TensorId t : ports.outputs) {
          const int32_t made = residency(t, device);
          if (made >= 0 && first_take.emplace(made, task).second) take(task, made);
        }
        for (TensorId t : ports.inputs) {
          if (graph_.tensor(t).producer.valid()) release(task, residency(t, device));
        }
      }
    }
    const size_t n = program_.tasks.size();
    program_.takes = Rows::from_pairs(n, std::move(takes));
    program_.releases = Rows::from_pairs(n, std::move(releases));
    for (int32_t s : program_.releases.items) ++program_.residencies[static_cast<size_t>(s)].readers;
    // A tensor without readers is a model output; it stays until the request ends.
    for (size_t s = 0; s < program_.residencies.size(); ++s) {
      if (program_.residencies[s].readers > 0) continue;
      program_.residencies[s].readers = 1;
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

  int32_t residency(TensorId t, DeviceId device) {
    if (!accounted(device)) return -1;
    const int pool = cluster_.memory_pool(device);
    const auto [it, fresh] =
        residency_of_.emplace(key(t.value, pool), static_cast<int32_t>(program_.residencies.size()));
    if (fresh) program_.residencies.push_back({.bytes = graph_.tensor(t).bytes, .pool = pool, .readers = 0});
    return it->second;
  }

  void hold_output(TensorId t) {
    const OpId producer = graph_.tensor(t).producer;
    if (!producer.valid()) return;
    for (const auto& [seg, task] : run_task_) {
      const Segment& s = in_.plan.segments[static_cast<size_t>(seg)];
      if (!std::binary_search(s.ops.begin(), s.ops.end(), producer)) continue;
      const int32_t kept = residency(t, s.device);
      if (kept < 0 || std::find(program_.held.begin(), program_.held.end(), kept) != program_.held.end())
        return;
      ++program_.residencies[static_cast<size_t>(kept)].readers;
      program_.held.push_back(kept);
      return;
    }
  }

  const ProgramInput& in_;
  const Graph& graph_;
  const Cluster& cluster_;
  const std::unordered_map<int32_t, int32_t>& run_task_;  // segment -> task
  Program& program_;
  std::unordered_map<uint64_t, int32_t> residency_of_;  // (tensor, pool) -> residency
};

}  // namespace

void account_memory(const ProgramInput& input, const std::unordered_map<int32_t, int32_t>& run_task,
                    Program& program) {
  Accounting(input, run_task, program).run();
}

}  // namespace heddle
