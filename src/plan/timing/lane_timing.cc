#include "lane_timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "run_moves.h"

namespace heddle {

Status LaneTiming::time(const Assignment& assignment) {
  assignment_ = &assignment;
  HEDDLE_RETURN_IF_ERROR(check_ops(assignment));
  HEDDLE_RETURN_IF_ERROR(assignment.segment.empty() && assignment.stage.empty() ? make_singles(assignment)
                                                                                : make_runs(assignment));
  HEDDLE_RETURN_IF_ERROR(fill_runs(assignment));
  HEDDLE_RETURN_IF_ERROR(link_runs());
  free_at_.assign(t_.map.size(), 0);
  steps_.reserve(runs_.size() + arrivals_.size());
  for (size_t chain = 0; chain < chains_.size(); ++chain) issue_next_load(chain, 0);
  for (size_t r = runs_.size(); r-- > 0;) {
    if (missing_[r] == 0 && runs_[r].stage_first == r) ready_.push_back(static_cast<uint32_t>(r));
  }
  start_ready_runs();
  // Serve the earliest request. A run that has not started yet waits for a queued request, so its own
  // requests come later than the earliest one: this order is first come, first served.
  while (!requests_.empty()) {
    const Request request = requests_.top();
    requests_.pop();
    if (request.kind == kTransfer) {
      serve(request);
    } else if (request.kind == kLoad) {
      serve_load(request);
    } else {
      serve_host_run(request.rank);
    }
    start_ready_runs();
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const TimedStep& a, const TimedStep& b) { return a.start < b.start; });
  return {};
}

Status LaneTiming::check_ops(const Assignment& a) {
  const Graph& graph = *t_.problem.graph;
  const size_t n = graph.num_ops();
  if (a.device.size() != n || a.order.size() != n || (!a.segment.empty() && a.segment.size() != n) ||
      (!a.stage.empty() && a.stage.size() != n) || (!a.host_access.empty() && a.host_access.size() != n) ||
      (!a.load_route.empty() && a.load_route.size() != n)) {
    return bad_assignment("it is for " + std::to_string(a.device.size()) + " ops (order: " +
                          std::to_string(a.order.size()) + "), the graph has " + std::to_string(n));
  }
  for (size_t v = 0; v < n; ++v) {
    const DeviceId d = a.device[v];
    if (!d.valid() || d.index() >= t_.problem.cluster->num_devices())
      return bad_assignment("op '" + graph.ops()[v].name + "' has no device");
    if (!t_.problem.may_use(d)) {
      return bad_assignment("op '" + graph.ops()[v].name + "' is on device '" +
                            t_.problem.cluster->device(d).name + "', which the problem does not allow");
    }
  }
  run_of_.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const OpId op = a.order[i];
    if (!op.valid() || op.index() >= n || run_of_[op.index()] >= 0)
      return bad_assignment("the order does not hold every op once");
    for (const uint32_t t : t_.flat.inputs(op.index())) {
      if (run_of_[static_cast<size_t>(t_.flat.producer(t))] < 0) {
        return bad_assignment("the order has op '" + graph.op(op).name + "' before '" +
                              graph.ops()[static_cast<size_t>(t_.flat.producer(t))].name +
                              "', which it needs");
      }
    }
    run_of_[op.index()] = static_cast<int32_t>(i);
  }
  return {};
}

// Every op is its own run, in the given order; run_of_ is already correct.
Status LaneTiming::make_singles(const Assignment& a) {
  ops_ = a.order;
  ops_begin_.resize(ops_.size() + 1);
  std::iota(ops_begin_.begin(), ops_begin_.end(), 0U);
  return {};
}

// Numbers segments by first op in the order, sorts them topologically and lists their ops.
Status LaneTiming::make_runs(const Assignment& a) {
  std::unordered_map<int, int32_t> number;
  std::vector<uint32_t> place_of_last;
  for (size_t i = 0; i < a.order.size(); ++i) {
    const OpId op = a.order[i];
    const int segment = a.segment.empty() ? op.value : a.segment[op.index()];
    const auto [it, fresh] = number.try_emplace(segment, static_cast<int32_t>(first_op_.size()));
    if (fresh) {
      first_op_.push_back(op);
      place_of_last.push_back(0);
    }
    const auto s = static_cast<size_t>(it->second);
    if (a.device[op.index()] != a.device[first_op_[s].index()]) {
      return bad_assignment("ops '" + t_.problem.graph->op(first_op_[s]).name + "' and '" +
                            t_.problem.graph->op(op).name + "' are in one segment but on different devices");
    }
    place_of_last[s] = static_cast<uint32_t>(i);
    run_of_[op.index()] = it->second;
  }
  HEDDLE_RETURN_IF_ERROR(find_stages(a, place_of_last));
  return sort_runs(a);
}

// The segments of a stage form one unit; every other segment is a unit of its own.
Status LaneTiming::find_stages(const Assignment& a, const std::vector<uint32_t>& place_of_last) {
  const Graph& graph = *t_.problem.graph;
  const size_t n = place_of_last.size();
  unit_of_.assign(n, UINT32_MAX);
  std::unordered_map<int, uint32_t> unit_of_stage;
  for (const OpId op : a.order) {
    const auto s = static_cast<size_t>(run_of_[op.index()]);
    const int stage = a.stage.empty() ? -1 : a.stage[op.index()];
    if (unit_of_[s] != UINT32_MAX) {
      if (units_[unit_of_[s]].stage != stage && (stage >= 0 || units_[unit_of_[s]].stage >= 0))
        return bad_assignment("the ops of the segment of '" + graph.op(op).name +
                              "' are not all of one stage");
      continue;
    }
    auto unit = static_cast<uint32_t>(units_.size());
    if (stage >= 0) unit = unit_of_stage.try_emplace(stage, unit).first->second;
    if (unit == units_.size()) units_.push_back({{}, 0, stage});
    Unit& u = units_[unit];
    const OpId other = u.segments.empty() ? op : first_op_[u.segments[0]];
    if (a.device[other.index()] != a.device[op.index()]) {
      return bad_assignment("ops '" + graph.op(other).name + "' and '" + graph.op(op).name +
                            "' are in one stage but on different devices");
    }
    u.segments.push_back(static_cast<uint32_t>(s));
    u.last = std::max(u.last, place_of_last[s]);
    unit_of_[s] = unit;
    const auto width = static_cast<size_t>(t_.problem.execution.stage_width);
    if (u.segments.size() > width) {
      return bad_assignment("the stage of op '" + graph.op(op).name + "' has more than " +
                            std::to_string(width) + " segments, the most that the problem allows at once");
    }
  }
  return {};
}

// Kahn's algorithm over the units. Among ready units the one with the earliest last op goes first, so units
// keep their places in the order if possible.
Status LaneTiming::sort_runs(const Assignment& a) {
  const Graph& graph = *t_.problem.graph;
  std::vector<std::vector<OpId>> members(unit_of_.size());
  std::vector<uint32_t> waits(units_.size(), 0);
  const auto unit_of_op = [&](OpId v) { return unit_of_[static_cast<size_t>(run_of_[v.index()])]; };
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    const auto s = static_cast<size_t>(run_of_[v]);
    members[s].emplace_back(v);
    for (const OpId p : graph.predecessors(OpId(v))) {
      if (run_of_[p.index()] == run_of_[v]) continue;
      if (unit_of_op(p) == unit_of_[s]) {
        return bad_assignment("op '" + graph.ops()[v].name + "' needs '" + graph.op(p).name +
                              "', which is in another segment of its own stage");
      }
      ++waits[unit_of_[s]];
    }
  }
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t u = 0; u < units_.size(); ++u) {
    if (waits[u] == 0) ready.push({units_[u].last, static_cast<uint32_t>(u)});
  }
  std::vector<int32_t> place(unit_of_.size(), -1);
  ops_.reserve(a.order.size());
  ops_begin_.reserve(unit_of_.size() + 1);
  ops_begin_.push_back(0);
  while (!ready.empty()) {
    const Unit& unit = units_[ready.top().second];
    const uint32_t self = ready.top().second;
    ready.pop();
    place_unit(unit.segments, members, place);
    for (const uint32_t s : unit.segments) {
      for (const OpId v : members[s]) {
        for (const OpId w : graph.successors(v)) {
          const uint32_t other = unit_of_op(w);
          if (other != self && --waits[other] == 0) ready.push({units_[other].last, other});
        }
      }
    }
  }
  if (ops_begin_.size() != unit_of_.size() + 1) {
    const auto s = static_cast<size_t>(std::find(place.begin(), place.end(), -1) - place.begin());
    return bad_assignment("the segment of op '" + graph.op(members[s][0]).name +
                          "' is not convex, or segments or stages wait for each other in a circle");
  }
  for (int32_t& r : run_of_) r = place[static_cast<size_t>(r)];
  return {};
}

// Adds a unit's segments as the next runs, in the order of their last ops.
void LaneTiming::place_unit(const std::vector<uint32_t>& segments,
                            const std::vector<std::vector<OpId>>& members, std::vector<int32_t>& place) {
  for (const uint32_t s : segments) {
    place[s] = static_cast<int32_t>(ops_begin_.size()) - 1;
    ops_.insert(ops_.end(), members[s].begin(), members[s].end());
    ops_begin_.push_back(static_cast<uint32_t>(ops_.size()));
  }
  unit_sizes_.push_back(static_cast<uint32_t>(segments.size()));
}

Status LaneTiming::fill_runs(const Assignment& a) {
  runs_.resize(ops_begin_.size() - 1);
  for (size_t r = 0; r < runs_.size(); ++r) {
    const auto ops = ops_of(r);
    runs_[r].device = a.device[ops[0].index()];
    runs_[r].us = t_.times.us(ops, runs_[r].device);
    runs_[r].first_place = a.order.size();
    if (!std::isfinite(runs_[r].us)) {
      return bad_assignment("op '" + t_.problem.graph->op(ops[0]).name +
                            "' (or its segment) cannot run on device '" +
                            t_.problem.cluster->device(runs_[r].device).name + "'");
    }
  }
  add_moves();
  for (size_t i = a.order.size(); i-- > 0;) runs_[run_of(a.order[i].index())].first_place = i;
  HEDDLE_RETURN_IF_ERROR(set_cold_choices(a));
  time_stages();
  for (const Run& run : runs_) {
    if (run.host_access && runs_[run.stage_first].stage_count > 1)
      return bad_assignment("a segment with direct host access cannot be part of a stage");
  }
  return {};
}

// Runs that move tensors themselves take longer for it.
void LaneTiming::add_moves() {
  RunMoves moves(t_.problem, t_.flat);
  if (!moves.is_used()) return;
  moves.restart();
  for (size_t r = 0; r < runs_.size(); ++r) {
    runs_[r].us += moves.us(
        ops_of(r), static_cast<int32_t>(r), runs_[r].device, [&](size_t op) { return run_of_[op]; },
        [&](int32_t other) { return runs_[static_cast<size_t>(other)].device; });
  }
}

void LaneTiming::time_stages() {
  for (size_t r = 0; r < runs_.size(); ++r) runs_[r].stage_first = static_cast<uint32_t>(r);
  std::vector<StageItem> items;
  uint32_t first = 0;
  for (const uint32_t count : unit_sizes_) {
    if (count > 1) {
      const DeviceId device = runs_[first].device;
      items.clear();
      for (uint32_t r = first; r < first + count; ++r) {
        items.push_back(t_.problem.costs->stage_item(ops_of(r), device, runs_[r].us));
        runs_[r].stage_first = first;
      }
      runs_[first].stage_count = count;
      runs_[first].us = t_.times.stage_us(items, device);
    }
    first += count;
  }
}

Status LaneTiming::link_runs() {
  missing_.assign(runs_.size(), 0);
  after_run_.assign(runs_.size(), -1);
  free_readers_.assign(runs_.size(), -1);
  first_arrival_.assign(t_.problem.graph->num_tensors(), -1);
  waits_.reserve(3 * runs_.size());
  for (size_t r = 0; r < runs_.size(); ++r) HEDDLE_RETURN_IF_ERROR(link_inputs(r));
  link_devices();
  if (t_.is_cold) {
    return plan_loads();
  }
  return {};
}

Status LaneTiming::link_inputs(size_t r) {
  const DeviceId device = runs_[r].device;
  for (const OpId op : ops_of(r)) {
    for (const uint32_t t : t_.flat.inputs(op.index())) {
      const size_t from = run_of(static_cast<size_t>(t_.flat.producer(t)));
      if (from == r) continue;
      if (runs_[from].device == device) {
        add_wait(free_readers_[from], r);
        continue;
      }
      const bool is_order_only =
          t_.has_given_times && t_.problem.is_order_only(TensorId(static_cast<int32_t>(t)));
      const Passage passage =
          is_order_only ? Passage::kFree : t_.map.transfer(runs_[from].device, device).passage;
      if (passage == Passage::kFree) {
        add_wait(free_readers_[from], r);
      } else if (passage == Passage::kRoute) {
        int32_t i = first_arrival_[t];
        while (i >= 0 && arrivals_[static_cast<size_t>(i)].to != device.value)
          i = arrivals_[static_cast<size_t>(i)].next;
        if (i < 0) {
          i = static_cast<int32_t>(arrivals_.size());
          arrivals_.push_back({first_arrival_[t], device.value, -1});
          first_arrival_[t] = i;
        }
        add_wait(arrivals_[static_cast<size_t>(i)].waiting, r);
      } else {
        const Cluster& cluster = *t_.problem.cluster;
        return bad_assignment("op '" + t_.problem.graph->op(op).name + "' on '" +
                              cluster.device(device).name + "' reads from '" +
                              cluster.device(runs_[from].device).name +
                              "', but there is no route between them");
      }
    }
  }
  return {};
}

// Each device runs in the given order; devices that share cores are ordered among each other.
void LaneTiming::link_devices() {
  std::vector<int32_t> last(t_.problem.cluster->num_devices(), -1);
  for (size_t r = 0; r < runs_.size(); ++r) {
    if (runs_[r].stage_first != r) continue;
    const DeviceId d = runs_[r].device;
    const bool is_cpu = t_.problem.cluster->device(d).kind == DeviceKind::kCpu;
    if (is_cpu && t_.problem.execution.unlimited_cpus) continue;
    if (last[d.index()] >= 0) add_wait(after_run_[static_cast<size_t>(last[d.index()])], r);
    for (const DeviceId other : t_.problem.cluster->overlaps(d)) {
      if (last[other.index()] >= 0) add_wait(after_run_[static_cast<size_t>(last[other.index()])], r);
    }
    last[d.index()] = static_cast<int32_t>(r);
  }
}

void LaneTiming::release(int32_t head, double at, bool elsewhere) {
  for (int32_t i = head; i >= 0; i = waits_[static_cast<size_t>(i)].next) {
    const uint32_t r = waits_[static_cast<size_t>(i)].run;
    runs_[r].start = std::max(runs_[r].start, at);
    if (elsewhere) runs_[r].ready_elsewhere = std::max(runs_[r].ready_elsewhere, at);
    if (--missing_[r] == 0) ready_.push_back(r);
  }
}

void LaneTiming::start_ready_runs() {
  while (!ready_.empty()) {
    const size_t r = ready_.back();
    ready_.pop_back();
    const bool waits_for_links =
        runs_[r].host_access && !t_.map.host_access_resources(runs_[r].device).empty();
    if (waits_for_links) {
      requests_.push({runs_[r].start, kHostRun, static_cast<uint32_t>(r), 0, 0});
    } else {
      start_run(r);
    }
  }
}

void LaneTiming::start_run(size_t first) {
  const double start = runs_[first].start, finish = start + runs_[first].us;
  for (size_t r = first; r < first + runs_[first].stage_count; ++r) {
    Run& run = runs_[r];
    run.start = start;
    run.finish = finish;
    steps_.push_back({{StepKind::kRun, SegmentId(r), TensorId(), run.device, run.device, -1}, start});
  }
  release(after_run_[first], finish, /*elsewhere=*/false);
  for (size_t r = first; r < first + runs_[first].stage_count; ++r) finish_run(r);
}

void LaneTiming::finish_run(size_t r) {
  const Run& run = runs_[r];
  // Readers in the same memory on another device count as elsewhere too.
  for (int32_t i = free_readers_[r]; i >= 0; i = waits_[static_cast<size_t>(i)].next) {
    const uint32_t reader = waits_[static_cast<size_t>(i)].run;
    runs_[reader].start = std::max(runs_[reader].start, run.finish);
    if (runs_[reader].device != run.device) {
      runs_[reader].ready_elsewhere = std::max(runs_[reader].ready_elsewhere, run.finish);
    }
    if (--missing_[reader] == 0) ready_.push_back(reader);
  }
  for (const OpId op : ops_of(r)) {
    for (const uint32_t t : t_.flat.outputs(op.index())) {
      for (int32_t i = first_arrival_[t]; i >= 0; i = arrivals_[static_cast<size_t>(i)].next) {
        requests_.push({run.finish, kTransfer, static_cast<uint32_t>(op.value), t,
                        arrivals_[static_cast<size_t>(i)].to});
      }
    }
  }
}

double LaneTiming::hold(std::span<const uint32_t> resources, double ready, double us) {
  for (const uint32_t r : resources) ready = std::max(ready, free_at_[r]);
  for (const uint32_t r : resources) free_at_[r] = ready + us;
  return ready;
}

void LaneTiming::serve(const Request& request) {
  const size_t run = run_of(request.rank);
  const DeviceId from = runs_[run].device, to(request.to);
  const RoutedTransfer& transfer = t_.map.transfer(from, to);
  const TensorId tensor(static_cast<int32_t>(request.tensor));
  const double us = t_.has_given_times ? t_.problem.given_transfer_us(tensor, from, to)
                                       : transfer.time_us(t_.flat.bytes(request.tensor));
  const double start = hold(transfer.resources, request.ready, us);
  steps_.push_back({{StepKind::kTransfer, SegmentId(run), tensor, from, to, -1}, start});
  int32_t i = first_arrival_[request.tensor];
  while (arrivals_[static_cast<size_t>(i)].to != request.to) i = arrivals_[static_cast<size_t>(i)].next;
  release(arrivals_[static_cast<size_t>(i)].waiting, start + us, /*elsewhere=*/true);
}

}  // namespace heddle
