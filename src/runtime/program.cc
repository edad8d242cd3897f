#include "program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "resource_names.h"

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

namespace {

constexpr int64_t kNsPerUs = 1000;

class Maker {
 public:
  Maker(const ProgramInput& in, int lane)
      : in_(in), graph_(*in.problem.graph), cluster_(*in.problem.cluster), numbers_(in.problem) {
    program_.lane = lane;
  }

  Program make() {
    for (size_t i = 0; i < in_.plan.steps.size(); ++i) {
      if (lane_of(in_.plan.steps[i]) == program_.lane) add_task(i);
    }
    const size_t n = program_.tasks.size();
    for (size_t t = 0; t < n; ++t) add_dependencies(static_cast<int32_t>(t));
    if (in_.ordered) add_order();
    mark_spins();
    account_memory();
    program_.successors = Rows::from_pairs(n, std::move(edges_));
    program_.pending.assign(n, 0);
    for (int32_t to : program_.successors.items) ++program_.pending[static_cast<size_t>(to)];
    for (size_t t = 0; t < n; ++t) {
      if (program_.pending[t] == 0) program_.roots.push_back(static_cast<int32_t>(t));
      if (program_.successors[t].empty()) ++program_.sinks;
    }
    program_.resources =
        Rows::from_pairs(n, in_.ordered ? std::vector<std::pair<int32_t, int32_t>>{} : std::move(uses_));
    program_.handovers = Rows::from_pairs(n, std::move(handovers_));
    return std::move(program_);
  }

 private:
  const Step& step(int32_t task) const {
    return in_.plan.steps[static_cast<size_t>(program_.tasks[static_cast<size_t>(task)].plan_step)];
  }
  const Segment& segment(SegmentId id) const { return in_.plan.segments[id.index()]; }
  int lane_of(const Step& s) const { return segment(s.segment).lane; }
  static uint64_t key(int32_t a, int32_t b) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b);
  }

  void add_task(size_t index) {
    const Step& s = in_.plan.steps[index];
    Task task{.plan_step = static_cast<int32_t>(index)};
    const double us = in_.timeline.finish_us[index] - in_.timeline.start_us[index];
    double timed = us;
    const auto id = static_cast<int32_t>(program_.tasks.size());
    std::vector<int32_t> used;
    if (s.kind == StepKind::kRun) {
      task.segment = s.segment.value;
      const DeviceId device = segment(s.segment).device;
      const auto own = in_.compiled[s.segment.index()]->timed_us();
      if (!own) {
        task.action = Action::kBlocking;
        task.worker = device.value;
      }
      timed = own.value_or(0);
      used = numbers_.of_run(device);
      run_task_[s.segment.value] = id;
    } else if (s.kind == StepKind::kTransfer) {
      if (in_.moves_data[s.from.index()] && in_.moves_data[s.to.index()])
        timed = 0;  // by reference
      else
        used = numbers_.of_way(hops_of(s), s.from, s.to);
      transfer_task_[key(s.tensor.value, s.to.value)] = id;
    } else {
      if (in_.moves_data[s.to.index()])
        timed = 0;  // compiled models hold their parameters
      else
        used = numbers_.of_way(hops_of(s), DeviceId(), s.to);
      note_load(s, id);
    }
    // Rounded to the clock's tick; what takes no time at all needs no clock.
    task.duration_ns = static_cast<int64_t>(std::llround(timed * kNsPerUs));
    if (task.action != Action::kBlocking && task.duration_ns > 0) task.action = Action::kTimed;
    program_.tasks.push_back(task);
    for (int32_t r : used) uses_.emplace_back(id, r);
  }

  std::span<const Hop> hops_of(const Step& s) const {
    if (s.route >= 0) return in_.plan.routes[static_cast<size_t>(s.route)];
    const Route* route = s.kind == StepKind::kLoad ? cluster_.load_route(s.to) : cluster_.route(s.from, s.to);
    return route == nullptr ? std::span<const Hop>() : std::span<const Hop>(route->hops);
  }

  // The first load of a parameter into a pool is the one that later segments there wait for.
  void note_load(const Step& s, int32_t id) {
    for (OpId op : segment(s.segment).ops) {
      for (ParamId p : graph_.op(op).params) load_task_.emplace(key(p.value, cluster_.memory_pool(s.to)), id);
    }
  }

  void depend(int32_t on, int32_t task) {
    if (on != task) edges_.emplace_back(on, task);
  }

  void add_dependencies(int32_t task) {
    const Step& s = step(task);
    if (s.kind == StepKind::kTransfer) depend(run_task_.at(s.segment.value), task);
    if (s.kind != StepKind::kRun) return;
    const DeviceId device = segment(s.segment).device;
    for (TensorId t : in_.ports[s.segment.index()].inputs) {
      if (!graph_.tensor(t).producer.valid()) continue;
      const auto transfer = transfer_task_.find(key(t.value, device.value));
      if (transfer == transfer_task_.end()) {
        depend(producer_task(t), task);
        continue;
      }
      depend(transfer->second, task);
      const bool reference = program_.tasks[static_cast<size_t>(transfer->second)].action == Action::kInstant;
      if (reference && program_.tasks[static_cast<size_t>(task)].action == Action::kBlocking)
        handovers_.emplace_back(task, transfer->second);
    }
    if (load_task_.empty()) return;
    for (OpId op : segment(s.segment).ops) {
      for (ParamId p : graph_.op(op).params) {
        const auto load = load_task_.find(key(p.value, cluster_.memory_pool(device)));
        if (load != load_task_.end() && load->second < task) depend(load->second, task);
      }
    }
  }

  int32_t producer_task(TensorId t) {
    if (producer_of_.empty()) {
      producer_of_.assign(graph_.num_tensors(), -1);
      for (const auto& [seg, task] : run_task_) {
        for (TensorId out : in_.ports[static_cast<size_t>(seg)].outputs) producer_of_[out.index()] = task;
      }
    }
    return producer_of_[t.index()];
  }

  // An edge between neighbours in the plan's order on each resource.
  void add_order() {
    std::vector<int32_t> last(static_cast<size_t>(numbers_.size()), -1);
    for (const auto& [task, resource] : uses_) {
      int32_t& before = last[static_cast<size_t>(resource)];
      if (before >= 0) depend(before, task);
      before = task;
    }
  }

  // A worker may spin for its next task when, on each of its cores, that task is the next one by the plan.
  void mark_spins() {
    std::vector<int32_t> last(static_cast<size_t>(numbers_.size()), -1);
    std::vector<int32_t> previous(cluster_.num_devices(), -1);
    for (size_t i = 0; i < uses_.size();) {
      const int32_t id = uses_[i].first;
      const Task& task = program_.tasks[static_cast<size_t>(id)];
      const bool worker = task.action == Action::kBlocking;
      const int32_t before = worker ? previous[static_cast<size_t>(task.worker)] : -1;
      bool alone = worker && before >= 0;
      for (; i < uses_.size() && uses_[i].first == id; ++i) {
        int32_t& holder = last[static_cast<size_t>(uses_[i].second)];
        alone = alone && holder == before;
        holder = id;
      }
      if (alone) program_.tasks[static_cast<size_t>(before)].spin_after = true;
      if (worker) previous[static_cast<size_t>(task.worker)] = id;
    }
  }

  // Only where memory is limited and no real allocation stands for it.
  bool accounted(DeviceId device) const {
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

  void account_memory() {
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
    // What nobody reads is a model output: it stays until the request ends.
    for (size_t s = 0; s < program_.stays.size(); ++s) {
      if (program_.stays[s].readers > 0) continue;
      program_.stays[s].readers = 1;
      program_.held.push_back(static_cast<int32_t>(s));
    }
    for (TensorId t : graph_.outputs()) hold_output(t);
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
  ResourceNumbers numbers_;
  Program program_;
  std::unordered_map<int32_t, int32_t> run_task_;        // segment -> task
  std::unordered_map<uint64_t, int32_t> transfer_task_;  // (tensor, device) -> task
  std::unordered_map<uint64_t, int32_t> load_task_;      // (param, pool) -> task
  std::unordered_map<uint64_t, int32_t> stay_of_;        // (tensor, pool) -> stay
  std::vector<int32_t> producer_of_;                     // tensor -> task
  std::vector<std::pair<int32_t, int32_t>> edges_, uses_, handovers_;
};

}  // namespace

Program make_program(const ProgramInput& input, int lane) { return Maker(input, lane).make(); }

}  // namespace heddle
