#include "lane_timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace heddle {
namespace {

Error bad(std::string why) { return Error(Code::kInvalidInput, "assignment: " + std::move(why)); }

}  // namespace

Status LaneTiming::time(const Assignment& assignment) {
  HEDDLE_RETURN_IF_ERROR(check_ops(assignment));
  HEDDLE_RETURN_IF_ERROR(assignment.segment.empty() ? make_singles(assignment) : make_runs(assignment));
  HEDDLE_RETURN_IF_ERROR(fill_runs(assignment));
  HEDDLE_RETURN_IF_ERROR(link_runs());
  free_at_.assign(t_.map.size(), 0);
  steps_.reserve(runs_.size() + arrivals_.size());
  for (size_t chain = 0; chain < chains_.size(); ++chain) issue_next_load(chain, 0);
  for (size_t r = runs_.size(); r-- > 0;) {
    if (missing_[r] == 0) ready_.push_back(static_cast<uint32_t>(r));
  }
  start_ready_runs();
  // A run that is still unknown waits for a request that is still queued, so what it will ask for comes later
  // than the least request: serving the least is first come first served.
  while (!requests_.empty()) {
    const Request request = requests_.top();
    requests_.pop();
    request.is_load ? serve_load(request) : serve(request);
    start_ready_runs();
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const TimedStep& a, const TimedStep& b) { return a.start < b.start; });
  return {};
}

Status LaneTiming::check_ops(const Assignment& a) {
  const Graph& graph = *t_.problem.graph;
  const size_t n = graph.num_ops();
  if (a.device.size() != n || a.order.size() != n || (!a.segment.empty() && a.segment.size() != n)) {
    return bad("it is for " + std::to_string(a.device.size()) +
               " ops (order: " + std::to_string(a.order.size()) + "), the graph has " + std::to_string(n));
  }
  for (size_t v = 0; v < n; ++v) {
    const DeviceId d = a.device[v];
    if (!d.valid() || d.index() >= t_.problem.cluster->num_devices())
      return bad("op '" + graph.ops()[v].name + "' has no device");
  }
  run_of_.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const OpId op = a.order[i];
    if (!op.valid() || op.index() >= n || run_of_[op.index()] >= 0)
      return bad("the order does not hold every op once");
    for (const uint32_t t : t_.flat.inputs(op.index())) {
      if (run_of_[static_cast<size_t>(t_.flat.producer(t))] < 0) {
        return bad("the order has op '" + graph.op(op).name + "' before '" +
                   graph.ops()[static_cast<size_t>(t_.flat.producer(t))].name + "', which it needs");
      }
    }
    run_of_[op.index()] = static_cast<int32_t>(i);
  }
  return {};
}

// Every op its own run, in the given order; run_of_ is right already.
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
  std::vector<OpId> first_op;
  for (size_t i = 0; i < a.order.size(); ++i) {
    const OpId op = a.order[i];
    const auto [it, fresh] = number.try_emplace(a.segment[op.index()], static_cast<int32_t>(first_op.size()));
    if (fresh) {
      first_op.push_back(op);
      place_of_last.push_back(0);
    }
    const auto s = static_cast<size_t>(it->second);
    if (a.device[op.index()] != a.device[first_op[s].index()]) {
      return bad("ops '" + t_.problem.graph->op(first_op[s]).name + "' and '" +
                 t_.problem.graph->op(op).name + "' are in one segment but on different devices");
    }
    place_of_last[s] = static_cast<uint32_t>(i);
    run_of_[op.index()] = it->second;
  }
  return sort_runs(a, place_of_last);
}

// Kahn's algorithm, earliest last op first: the segments' place in the order where that is possible.
Status LaneTiming::sort_runs(const Assignment& a, std::vector<uint32_t>& place_of_last) {
  const Graph& graph = *t_.problem.graph;
  const size_t n = place_of_last.size();
  std::vector<std::vector<OpId>> members(n);
  std::vector<uint32_t> waits(n, 0);
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    const auto s = static_cast<size_t>(run_of_[v]);
    members[s].emplace_back(v);
    for (const OpId p : graph.predecessors(OpId(v))) waits[s] += run_of_[p.index()] != run_of_[v];
  }
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t s = 0; s < n; ++s) {
    if (waits[s] == 0) ready.push({place_of_last[s], static_cast<uint32_t>(s)});
  }
  std::vector<int32_t> place(n, -1);
  int32_t next = 0;
  ops_.reserve(a.order.size());
  ops_begin_.reserve(n + 1);
  ops_begin_.push_back(0);
  while (!ready.empty()) {
    const size_t s = ready.top().second;
    ready.pop();
    place[s] = next++;
    ops_.insert(ops_.end(), members[s].begin(), members[s].end());
    ops_begin_.push_back(static_cast<uint32_t>(ops_.size()));
    for (const OpId v : members[s]) {
      for (const OpId w : graph.successors(v)) {
        const auto other = static_cast<size_t>(run_of_[w.index()]);
        if (other != s && --waits[other] == 0)
          ready.push({place_of_last[other], static_cast<uint32_t>(other)});
      }
    }
  }
  if (static_cast<size_t>(next) != n) {
    const auto s = static_cast<size_t>(std::find(place.begin(), place.end(), -1) - place.begin());
    return bad("the segment of op '" + graph.op(members[s][0]).name +
               "' is not convex, or segments wait for each other in a circle");
  }
  for (int32_t& r : run_of_) r = place[static_cast<size_t>(r)];
  return {};
}

Status LaneTiming::fill_runs(const Assignment& a) {
  runs_.resize(ops_begin_.size() - 1);
  for (size_t r = 0; r < runs_.size(); ++r) {
    const auto ops = ops_of(r);
    runs_[r].device = a.device[ops[0].index()];
    runs_[r].us = t_.times.us(ops, runs_[r].device);
    runs_[r].first_place = a.order.size();
    if (!std::isfinite(runs_[r].us)) {
      return bad("op '" + t_.problem.graph->op(ops[0]).name + "' (or its segment) cannot run on device '" +
                 t_.problem.cluster->device(runs_[r].device).name + "'");
    }
  }
  for (size_t i = a.order.size(); i-- > 0;) runs_[run_of(a.order[i].index())].first_place = i;
  return {};
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
    plan_loads();
    for (size_t d = 0; d < t_.problem.cluster->num_devices(); ++d) {
      const Way& way = t_.map.load_way(DeviceId(d));
      if (chain_of_device_[d] >= 0 && way.passage == Passage::kNone) {
        return bad("device '" + t_.problem.cluster->devices()[d].name +
                   "' has no route from its host's memory for parameters");
      }
    }
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
      const Passage passage = t_.map.way(runs_[from].device, device).passage;
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
        return bad("op '" + t_.problem.graph->op(op).name + "' on '" + cluster.device(device).name +
                   "' reads from '" + cluster.device(runs_[from].device).name +
                   "', but there is no route between them");
      }
    }
  }
  return {};
}

// A device, and devices that share its cores, run in the given order.
void LaneTiming::link_devices() {
  std::vector<int32_t> last(t_.problem.cluster->num_devices(), -1);
  for (size_t r = 0; r < runs_.size(); ++r) {
    const DeviceId d = runs_[r].device;
    if (last[d.index()] >= 0) add_wait(after_run_[static_cast<size_t>(last[d.index()])], r);
    for (const DeviceId other : t_.problem.cluster->overlaps(d)) {
      if (last[other.index()] >= 0) add_wait(after_run_[static_cast<size_t>(last[other.index()])], r);
    }
    last[d.index()] = static_cast<int32_t>(r);
  }
}

void LaneTiming::plan_loads() {
  const Cluster& cluster = *t_.problem.cluster;
  const size_t devices = cluster.num_devices(), params = t_.problem.graph->num_params();
  load_waiting_.assign(runs_.size(), -1);
  load_bytes_.assign(runs_.size(), 0);
  chain_of_device_.assign(devices, -1);
  std::vector<uint32_t> by_first_use(runs_.size());
  std::iota(by_first_use.begin(), by_first_use.end(), 0U);
  std::sort(by_first_use.begin(), by_first_use.end(),
            [&](uint32_t a, uint32_t b) { return runs_[a].first_place < runs_[b].first_place; });
  // Devices whose loads share a resource are one chain.
  std::vector<int32_t> chain_of_resource(t_.map.size(), -1);
  std::vector<int32_t> brought(static_cast<size_t>(cluster.num_memory_pools()) * params, -1);
  for (const uint32_t r : by_first_use) {
    const DeviceId d = runs_[r].device;
    if (!needs_load(cluster, d)) continue;
    const auto pool = static_cast<size_t>(cluster.memory_pool(d));
    for (const OpId op : ops_of(r)) {
      for (const uint32_t p : t_.flat.params(op.index())) {
        int32_t& by = brought[pool * params + p];
        if (by < 0) {
          by = static_cast<int32_t>(r);
          load_bytes_[r] = add_bytes(load_bytes_[r], t_.problem.graph->params()[p].bytes);
        }
        add_wait(load_waiting_[static_cast<size_t>(by)], r);
      }
    }
    if (load_bytes_[r] == 0) continue;
    runs_[r].brings_params = true;
    int32_t& chain = chain_of_device_[d.index()];
    for (const uint32_t k : t_.map.load_way(d).resources) {
      if (chain < 0) chain = chain_of_resource[k];
    }
    if (chain < 0) {
      chain = static_cast<int32_t>(chains_.size());
      chains_.emplace_back();
    }
    for (const uint32_t k : t_.map.load_way(d).resources) {
      if (chain_of_resource[k] < 0) chain_of_resource[k] = chain;
    }
    chains_[static_cast<size_t>(chain)].push_back(r);
  }
  chain_at_.assign(chains_.size(), 0);
}

void LaneTiming::issue_next_load(size_t chain, double at) {
  if (chain_at_[chain] == chains_[chain].size()) return;
  const uint32_t r = chains_[chain][chain_at_[chain]++];
  requests_.push({at, 1, static_cast<uint32_t>(runs_[r].first_place), r, runs_[r].device.value});
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
    start_run(r);
  }
}

void LaneTiming::start_run(size_t r) {
  Run& run = runs_[r];
  run.finish = run.start + run.us;
  steps_.push_back({{StepKind::kRun, SegmentId(r), TensorId(), run.device, run.device, -1}, run.start});
  release(after_run_[r], run.finish, /*elsewhere=*/false);
  // Readers in the same memory but on another device count as elsewhere too.
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
        requests_.push(
            {run.finish, 0, static_cast<uint32_t>(op.value), t, arrivals_[static_cast<size_t>(i)].to});
      }
    }
  }
}

double LaneTiming::hold(const Way& way, double ready, double us) {
  for (const uint32_t r : way.resources) ready = std::max(ready, free_at_[r]);
  for (const uint32_t r : way.resources) free_at_[r] = ready + us;
  return ready;
}

void LaneTiming::serve(const Request& request) {
  const size_t run = run_of(request.rank);
  const DeviceId from = runs_[run].device, to(request.to);
  const Way& way = t_.map.way(from, to);
  const double us = way.time_us(t_.flat.bytes(request.tensor));
  const double start = hold(way, request.ready, us);
  const TensorId tensor(static_cast<int32_t>(request.tensor));
  steps_.push_back({{StepKind::kTransfer, SegmentId(run), tensor, from, to, -1}, start});
  int32_t i = first_arrival_[request.tensor];
  while (arrivals_[static_cast<size_t>(i)].to != request.to) i = arrivals_[static_cast<size_t>(i)].next;
  release(arrivals_[static_cast<size_t>(i)].waiting, start + us, /*elsewhere=*/true);
}

void LaneTiming::serve_load(const Request& request) {
  const size_t r = request.tensor;
  const Way& way = t_.map.load_way(runs_[r].device);
  const double us = way.time_us(load_bytes_[r]);
  const double start = hold(way, request.ready, us);
  steps_.push_back({{StepKind::kLoad, SegmentId(r), TensorId(), DeviceId(), runs_[r].device, -1}, start});
  release(load_waiting_[r], start + us, /*elsewhere=*/true);
  const auto chain = static_cast<size_t>(chain_of_device_[runs_[r].device.index()]);
  // Where loads occupy nothing they need not wait for each other.
  issue_next_load(chain, way.resources.empty() ? start : start + us);
}

}  // namespace heddle
