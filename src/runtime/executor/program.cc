#include "program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "rank_program.h"

namespace heddle {

namespace {

constexpr int64_t kNsPerUs = 1000;

class Maker {
 public:
  Maker(const ProgramInput& in, int lane)
      : in_(in), graph_(*in.problem.graph), cluster_(*in.problem.cluster), numbers_(in.problem, in.seats) {
    program_.lane = lane;
    if (in_.ranks != nullptr) find_producers();
  }

  Program make() {
    for (size_t i = 0; i < in_.plan.steps.size(); ++i) {
      if (lane_of(in_.plan.steps[i]) == program_.lane) add_task(i);
    }
    for (size_t t = 0; t < program_.tasks.size(); ++t) add_dependencies(static_cast<int32_t>(t));
    for (const auto& [before, load] : in_.reuses) {
      const auto run = run_task_.find(before), taken = load_of_.find(load);
      if (run != run_task_.end() && taken != load_of_.end()) depend(run->second, taken->second);
    }
    if (in_.ordered) add_order();
    start_stages_together();
    mark_spins(program_.tasks, uses_, numbers_.size(), in_.seats.seats.size());
    if (in_.ranks != nullptr) keep_own_part();
    account_memory(in_, run_task_, program_);
    if (enqueues_) add_collect();
    const size_t n = program_.tasks.size();
    if (enqueues_) program_.waits = waits_of(program_.tasks, edges_);
    program_.successors = Rows::from_pairs(n, std::move(edges_));
    program_.pending.assign(n, 0);
    for (const Message& m : program_.receives) ++program_.pending[static_cast<size_t>(m.task)];
    for (int32_t to : program_.successors.items) ++program_.pending[static_cast<size_t>(to)];
    for (size_t t = 0; t < n; ++t) {
      if (program_.pending[t] == 0) program_.roots.push_back(static_cast<int32_t>(t));
      if (program_.successors[t].empty()) ++program_.sinks;
    }
    program_.resources =
        Rows::from_pairs(n, in_.ordered ? std::vector<std::pair<int32_t, int32_t>>{} : std::move(uses_));
    program_.handovers = Rows::from_pairs(n, std::move(handovers_));
    program_.signals = Rows::from_pairs(n, std::move(signals_));
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
    if (in_.ranks != nullptr && s.kind == StepKind::kRun) send_without_step(s);
    if (s.kind == StepKind::kRun) upload_inputs(s);
    if (s.kind == StepKind::kTransfer) fetch_before_send(s);
    Task task{.plan_step = static_cast<int32_t>(index)};
    const double us = in_.timeline.finish_us[index] - in_.timeline.start_us[index];
    double timed = us;
    const auto id = static_cast<int32_t>(program_.tasks.size());
    std::vector<int32_t> used;
    if (s.kind == StepKind::kRun) {
      task.segment = s.segment.value;
      const int32_t seat = in_.seats.of_segment[s.segment.index()];
      const auto own = in_.compiled[s.segment.index()]->timed_us();
      if (!own) {
        task.action = Action::kBlocking;
        task.worker = seat;
      }
      if (memory(segment(s.segment).device) != 0) enqueue(task, Enqueue::kRun);
      timed = own.value_or(0);
      used = numbers_.of_run(in_.seats.seats[static_cast<size_t>(seat)]);
      if (segment(s.segment).host_access) hold_host_access(s, used);
      run_task_[s.segment.value] = id;
    } else if (s.kind == StepKind::kTransfer) {
      const bool moves = in_.moves_data[s.from.index()] && in_.moves_data[s.to.index()];
      if (is_sent(s)) {
        timed = 0;  // takes the message's time
        const auto sent = sent_.find(key(s.tensor.value, landing(s.to)));
        if (sent == sent_.end())
          used = send(s.tensor, s.from, s.to, hops_of(s), task);
        else
          used = pass_on(s, sent->second, id, task);
      } else if (moves) {
        timed = 0;
        if (memory(s.from) != memory(s.to)) {
          const auto [there, fresh] = arrived_.try_emplace(key(s.tensor.value, place(s.to)), id);
          if (fresh) {
            enqueue(task, Enqueue::kTransfer);
            used = numbers_.of_route(hops_of(s), s.from, s.to);
          } else {
            relays_.emplace(id, there->second);
          }
        }  // otherwise by reference
      } else
        used = numbers_.of_route(hops_of(s), s.from, s.to);
      transfer_task_[key(s.tensor.value, s.to.value)] = id;
    } else {
      if (in_.moves_data[s.to.index()]) timed = 0;  // compiled models on the host contain their parameters
      if (memory(s.to) != 0) enqueue(task, Enqueue::kLoad);
      if (task.enqueue == Enqueue::kLoad || !in_.moves_data[s.to.index()])
        used = numbers_.of_route(hops_of(s), DeviceId(), s.to);
      note_load(s, id);
    }
    // Rounded to the clock's tick; tasks of zero duration do not use the clock.
    task.duration_ns = static_cast<int64_t>(std::llround(timed * kNsPerUs));
    if (task.action != Action::kBlocking && task.duration_ns > 0) task.action = Action::kTimed;
    program_.tasks.push_back(task);
    for (int32_t r : used) uses_.emplace_back(id, r);
    if (in_.ranks != nullptr) note_owner(s, id);
    if (s.kind == StepKind::kRun) fetch_outputs(s, id);
    if (task.action == Action::kSend) upload_after_send(s, id);
  }

  int32_t memory(DeviceId device) const { return in_.memory_of[device.index()]; }
  // The place of a tensor that this device holds: an accelerator's memory, or the memory of the device's
  // host. Hosts of other ranks have other numbers.
  int32_t host_place(DeviceId device) const { return in_.ranks == nullptr ? 0 : -rank_of(device); }
  int32_t place(DeviceId device) const { return memory(device) != 0 ? memory(device) : host_place(device); }
  void enqueue(Task& task, Enqueue what) {
    task.enqueue = what;
    enqueues_ = true;
  }
  // Adds a copy for which the plan has no step.
  int32_t add_copy(const Task& task) {
    const auto id = static_cast<int32_t>(program_.tasks.size());
    program_.tasks.push_back(task);
    enqueues_ = true;
    if (in_.ranks != nullptr) {
      owner_.push_back(rank_of(DeviceId(task.device)));
      to_rank_.push_back(-1);
    }
    return id;
  }

  // Uploads model inputs from the host; the plan has no step for them.
  void upload_inputs(const Step& run) {
    const DeviceId device = segment(run.segment).device;
    if (memory(device) == 0) return;
    for (TensorId t : in_.ports[run.segment.index()].inputs) {
      if (graph_.tensor(t).producer.valid()) continue;
      const auto id = static_cast<int32_t>(program_.tasks.size());
      if (!arrived_.try_emplace(key(t.value, memory(device)), id).second) continue;
      add_copy({.enqueue = Enqueue::kUpload, .tensor = t.value, .device = device.value});
    }
  }
  void fetch_outputs(const Step& run, int32_t run_task) {
    const DeviceId device = segment(run.segment).device;
    if (memory(device) == 0) return;
    for (TensorId t : in_.ports[run.segment.index()].outputs) {
      const auto outputs = graph_.outputs();
      if (std::find(outputs.begin(), outputs.end(), t) == outputs.end()) continue;
      const int32_t id = add_copy({.enqueue = Enqueue::kFetch, .tensor = t.value, .device = device.value});
      arrived_.emplace(key(t.value, host_place(device)), id);
      depend(run_task, id);
    }
  }
  // In latency mode the thread that enqueued the last task waits, as it has nothing else to do. Otherwise
  // other requests follow or other ranks wait for messages, so a separate thread waits.
  void add_collect() {
    const auto id = static_cast<int32_t>(program_.tasks.size());
    std::vector<bool> followed(program_.tasks.size(), false);
    for (const auto& [from, to] : edges_) followed[static_cast<size_t>(from)] = true;
    Task task{.enqueue = Enqueue::kCollect};
    if (!in_.ordered || in_.ranks != nullptr) {
      task.action = Action::kBlocking;
      task.worker = static_cast<int32_t>(in_.seats.seats.size()) + program_.lane;
      uses_.emplace_back(id, numbers_.size() + program_.lane);
    }
    program_.tasks.push_back(task);
    for (int32_t t = 0; t < id; ++t) {
      if (!followed[static_cast<size_t>(t)]) depend(t, id);
    }
  }

  int32_t rank_of(DeviceId device) const { return in_.ranks->rank_of_device[device.index()]; }
  bool crosses(DeviceId from, DeviceId to) const {
    return in_.ranks != nullptr && rank_of(from) != rank_of(to);
  }

  void find_producers() {
    producer_segment_.assign(graph_.num_tensors(), -1);
    for (size_t s = 0; s < in_.plan.segments.size(); ++s) {
      if (in_.plan.segments[s].lane != program_.lane) continue;
      for (TensorId t : in_.ports[s].outputs) producer_segment_[t.index()] = static_cast<int32_t>(s);
    }
  }

  bool is_sent(const Step& s) const {
    if (!crosses(s.from, s.to)) return false;
    return in_.ranks->real_transfers || (in_.moves_data[s.from.index()] && in_.moves_data[s.to.index()]);
  }
  // True if messages can be read from and written to the device's own memory.
  bool direct(DeviceId device) const { return memory(device) != 0 && in_.ranks->direct[device.index()]; }
  // The place where messages for the device arrive.
  int32_t landing(DeviceId to) const { return direct(to) ? memory(to) : host_place(to); }

  // Copies a tensor to the host before it is sent from an accelerator whose memory the transport cannot read.
  void fetch_before_send(const Step& s) {
    if (!is_sent(s) || memory(s.from) == 0 || direct(s.from)) return;
    if (sent_.contains(key(s.tensor.value, landing(s.to)))) return;
    const auto id = static_cast<int32_t>(program_.tasks.size());
    if (!arrived_.try_emplace(key(s.tensor.value, host_place(s.from)), id).second) return;
    add_copy({.enqueue = Enqueue::kFetch, .tensor = s.tensor.value, .device = s.from.value});
    depend(run_task_.at(s.segment.value), id);
  }
  // Copies a received tensor on to its accelerator; this completes the plan's step.
  void upload_after_send(const Step& s, int32_t sent) {
    if (memory(s.to) == 0 || direct(s.to)) return;
    const int32_t id = add_copy({.enqueue = Enqueue::kUpload,
                                 .plan_step = program_.tasks[static_cast<size_t>(sent)].plan_step,
                                 .arrival = true,
                                 .tensor = s.tensor.value,
                                 .device = s.to.value});
    arrived_.emplace(key(s.tensor.value, memory(s.to)), id);
    transfer_task_[key(s.tensor.value, s.to.value)] = id;
    uploads_.emplace(sent, id);
    depend(sent, id);
  }
  // The plan's step for a tensor that a message has brought: handed over by reference, or copied to an
  // accelerator.
  std::vector<int32_t> pass_on(const Step& s, int32_t sent, int32_t id, Task& task) {
    if (memory(s.to) == 0 || direct(s.to)) {
      relays_.emplace(id, sent);
      return {};
    }
    const auto [there, fresh] = arrived_.try_emplace(key(s.tensor.value, memory(s.to)), id);
    relays_.emplace(id, fresh ? sent : there->second);
    if (!fresh) return {};
    enqueue(task, Enqueue::kUpload);
    task.tensor = s.tensor.value;
    task.device = s.to.value;
    return numbers_.of_route(hops_of(s), s.from, s.to);
  }

  // Makes the next task send the tensor; returns the resources that it occupies.
  std::vector<int32_t> send(TensorId tensor, DeviceId from, DeviceId to, std::span<const Hop> hops,
                            Task& task) {
    const auto id = static_cast<int32_t>(program_.tasks.size());
    task.action = Action::kSend;
    sent_.emplace(key(tensor.value, landing(to)), id);
    const auto own = [&](DeviceId device) { return direct(device) ? memory(device) : 0; };
    carried_.emplace(id, Carried{tensor.value, own(from), own(to)});
    if (memory(from) != 0 && !direct(from))
      fetched_.emplace(id, arrived_.at(key(tensor.value, host_place(from))));
    return numbers_.of_route(hops, from, to);
  }

  // Devices that share one memory need no transfer step, but a tensor must still be sent if they belong to
  // different ranks.
  void send_without_step(const Step& run) {
    const DeviceId to = segment(run.segment).device;
    for (TensorId t : in_.ports[run.segment.index()].inputs) {
      const int32_t producer = producer_segment_[t.index()];
      if (producer < 0 || transfer_task_.contains(key(t.value, to.value))) continue;
      const DeviceId from = in_.plan.segments[static_cast<size_t>(producer)].device;
      const bool moves = in_.moves_data[from.index()] && in_.moves_data[to.index()];
      if (!crosses(from, to) || !(moves || in_.ranks->real_transfers)) continue;
      if (sent_.contains(key(t.value, landing(to)))) continue;
      const auto id = static_cast<int32_t>(program_.tasks.size());
      Task task;
      send(t, from, to, {}, task);
      program_.tasks.push_back(task);
      owner_.push_back(rank_of(from));
      to_rank_.push_back(rank_of(to));
      depend(run_task_.at(producer), id);
    }
  }

  void note_owner(const Step& s, int32_t id) {
    const bool transfer = s.kind == StepKind::kTransfer, here = relays_.contains(id);
    const DeviceId at = transfer && !here ? s.from : s.to;
    owner_.push_back(rank_of(s.kind == StepKind::kRun ? segment(s.segment).device : at));
    to_rank_.push_back(transfer && !here && crosses(s.from, s.to) ? rank_of(s.to) : -1);
  }

  void keep_own_part() {
    WholeProgram whole{std::move(program_.tasks), std::move(edges_), owner_, {}, to_rank_};
    whole.carried.resize(whole.tasks.size());
    for (const auto& [task, carried] : carried_) whole.carried[static_cast<size_t>(task)] = carried;
    RankPart part = part_of_rank(whole, in_.ranks->self);
    const auto keep = [&](std::vector<std::pair<int32_t, int32_t>>& pairs, bool both) {
      std::vector<std::pair<int32_t, int32_t>> own;
      for (const auto& [task, other] : pairs) {
        const int32_t a = part.from_whole[static_cast<size_t>(task)];
        const int32_t b = both ? part.from_whole[static_cast<size_t>(other)] : other;
        if (a >= 0 && b >= 0) own.emplace_back(a, b);
      }
      pairs = std::move(own);
    };
    keep(uses_, false);
    keep(handovers_, true);
    for (auto run = run_task_.begin(); run != run_task_.end();) {
      run->second = part.from_whole[static_cast<size_t>(run->second)];
      run = run->second < 0 ? run_task_.erase(run) : std::next(run);
    }
    program_.tasks = std::move(part.tasks);
    edges_ = std::move(part.edges);
    program_.sends = std::move(part.sends);
    program_.receives = std::move(part.receives);
    program_.messages = part.messages;
    signals_ = std::move(part.signals);
    enqueues_ = std::any_of(program_.tasks.begin(), program_.tasks.end(),
                            [](const Task& task) { return task.enqueue != Enqueue::kNothing; });
  }

  std::span<const Hop> hops_of(const Step& s) const {
    if (s.route >= 0) return in_.plan.routes[static_cast<size_t>(s.route)];
    const Route* route = s.kind == StepKind::kLoad ? cluster_.load_route(s.to) : cluster_.route(s.from, s.to);
    return route == nullptr ? std::span<const Hop>() : std::span<const Hop>(route->hops);
  }

  void hold_host_access(const Step& s, std::vector<int32_t>& used) const {
    const Route* route = cluster_.load_route(s.to);
    if (route == nullptr || in_.problem.execution.fixed_sharing) return;
    for (const int32_t r : numbers_.of_route(route->hops, DeviceId(), DeviceId())) used.push_back(r);
  }

  // Later segments in a pool wait for the first load of a parameter into it.
  void note_load(const Step& s, int32_t id) {
    load_of_.emplace(s.segment.value, id);
    for (OpId op : segment(s.segment).ops) {
      for (ParamId p : graph_.op(op).params) load_task_.emplace(key(p.value, cluster_.memory_pool(s.to)), id);
    }
  }

  void depend(int32_t on, int32_t task) {
    if (on != task) edges_.emplace_back(on, task);
  }

  void add_dependencies(int32_t task) {
    const Task& own = program_.tasks[static_cast<size_t>(task)];
    if (own.plan_step < 0 || own.arrival) return;  // no step of its own: a copy or an arrival
    const Step& s = step(task);
    if (s.kind == StepKind::kTransfer) {
      const auto relay = relays_.find(task), fetched = fetched_.find(task);
      depend(relay != relays_.end()      ? relay->second
             : fetched != fetched_.end() ? fetched->second
                                         : run_task_.at(s.segment.value),
             task);
    }
    if (s.kind != StepKind::kRun) return;
    const DeviceId device = segment(s.segment).device;
    for (TensorId t : in_.ports[s.segment.index()].inputs) {
      if (!graph_.tensor(t).producer.valid()) {
        const auto upload = arrived_.find(key(t.value, place(device)));
        if (upload != arrived_.end()) depend(upload->second, task);
        continue;
      }
      const auto transfer = transfer_task_.find(key(t.value, device.value));
      if (transfer == transfer_task_.end()) {
        const int32_t producer = producer_task(t);
        const auto sent = in_.ranks == nullptr ? sent_.end() : sent_.find(key(t.value, landing(device)));
        depend(sent == sent_.end() ? producer : sent->second, task);
        continue;
      }
      depend(transfer->second, task);
      const Task& brings = program_.tasks[static_cast<size_t>(transfer->second)];
      const bool reference = brings.action == Action::kInstant && brings.enqueue == Enqueue::kNothing;
      if (reference && program_.tasks[static_cast<size_t>(task)].action == Action::kBlocking)
        handovers_.emplace_back(task, transfer->second);
    }
    if (load_task_.empty() || segment(s.segment).host_access) return;
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

  // Adds an edge between neighbours in the plan's order on each resource.
  void add_order() {
    // Members of one stage hold a resource together, unless they run on threads and really share a core.
    struct Holders {
      std::vector<int32_t> before, now;
    };
    std::vector<Holders> holders(static_cast<size_t>(numbers_.size()));
    for (const auto& [task, resource] : uses_) {
      Holders& h = holders[static_cast<size_t>(resource)];
      const bool joins = !h.now.empty() && at_once(h.now[0], task);
      if (!joins) h.before = std::exchange(h.now, {});
      h.now.push_back(task);
      for (const int32_t before : h.before) {
        if (!left_to_network(before, task)) depend_in_order(before, task);
      }
    }
  }

  // A message's transfer includes the copies from and to accelerators.
  void depend_in_order(int32_t before, int32_t task) {
    const auto upload = uploads_.find(before), fetch = fetched_.find(task);
    const bool same = upload != uploads_.end() &&
                      owner_[static_cast<size_t>(upload->second)] == owner_[static_cast<size_t>(task)];
    const int32_t last = same ? upload->second : before;
    depend(last, task);
    // A fetch for an earlier message has already been done.
    if (fetch != fetched_.end() && last < fetch->second) depend(last, fetch->second);
  }

  // Messages of different ranks do not wait for each other, since the network divides its bandwidth itself.
  bool left_to_network(int32_t a, int32_t b) const {
    return program_.tasks[static_cast<size_t>(a)].action == Action::kSend &&
           program_.tasks[static_cast<size_t>(b)].action == Action::kSend &&
           owner_[static_cast<size_t>(a)] != owner_[static_cast<size_t>(b)];
  }

  int32_t stage_of(int32_t task) const {
    if (program_.tasks[static_cast<size_t>(task)].plan_step < 0) return -1;
    return step(task).kind == StepKind::kRun ? segment(step(task).segment).stage : -1;
  }
  bool at_once(int32_t a, int32_t b) const {
    return stage_of(a) >= 0 && stage_of(a) == stage_of(b) &&
           program_.tasks[static_cast<size_t>(a)].action != Action::kBlocking;
  }

  // A stage starts when all members have their inputs.
  void start_stages_together() {
    std::map<int32_t, std::vector<int32_t>> members;
    for (size_t t = 0; t < program_.tasks.size(); ++t) {
      const int32_t stage = stage_of(static_cast<int32_t>(t));
      if (stage >= 0) members[stage].push_back(static_cast<int32_t>(t));
    }
    if (members.empty()) return;
    std::map<int32_t, std::vector<int32_t>> waits;
    for (const auto& [from, to] : edges_) {
      const int32_t stage = stage_of(to);
      if (stage >= 0 && stage_of(from) != stage) waits[stage].push_back(from);
    }
    for (const auto& [stage, before] : waits) {
      for (const int32_t task : members[stage]) {
        for (const int32_t from : before) depend(from, task);
      }
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
  std::unordered_map<int32_t, int32_t> load_of_;         // segment -> task
  std::vector<int32_t> producer_of_;                     // tensor -> task
  std::unordered_map<uint64_t, int32_t> arrived_;        // (tensor, place) -> task that copies it there
  bool enqueues_ = false;
  std::vector<std::pair<int32_t, int32_t>> edges_, uses_, handovers_, signals_;
  // Several ranks.
  std::vector<int32_t> producer_segment_;         // per tensor
  std::vector<int32_t> owner_, to_rank_;          // per task
  std::unordered_map<uint64_t, int32_t> sent_;    // (tensor, landing) -> task that sends it there
  std::unordered_map<int32_t, Carried> carried_;  // by kSend
  std::unordered_map<int32_t, int32_t> fetched_;  // kSend -> copy to the host before it
  std::unordered_map<int32_t, int32_t> uploads_;  // kSend -> copy to an accelerator after it
  std::unordered_map<int32_t, int32_t> relays_;   // later transfer to a rank or memory -> first one
};

}  // namespace

Program make_program(const ProgramInput& input, int lane) { return Maker(input, lane).make(); }

}  // namespace heddle
