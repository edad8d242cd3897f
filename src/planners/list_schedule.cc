#include "list_schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "heddle/base/units.h"

namespace heddle {

ListSchedule::ListSchedule(const Problem& problem, const PlacementCosts& costs, bool insertion)
    : problem_(problem),
      costs_(costs),
      insertion_(insertion),
      busy_(static_cast<size_t>(costs.num_resources())),
      device_(problem.graph->num_ops(), 0),
      start_(problem.graph->num_ops(), 0),
      finish_(problem.graph->num_ops(), 0),
      param_bytes_(costs.num_pools(), 0),
      load_done_(costs.num_devices(), 0) {
  for (size_t p = 0; p < costs.num_pools(); ++p)
    limited_ |= costs.param_room(static_cast<int>(p)) != INT64_MAX;
  for (size_t d = 0; d < costs.num_devices(); ++d) limited_ |= costs.load_us_per_byte(d) > 0;
  if (limited_) has_param_.assign(costs.num_pools(), std::vector<bool>(problem.graph->num_params(), false));
}

int64_t ListSchedule::missing_params(OpId op, int pool) const {
  int64_t bytes = 0;
  for (const auto p : problem_.graph->op(op).params) {
    if (!has_param_[static_cast<size_t>(pool)][p.index()]) bytes += problem_.graph->param(p).bytes;
  }
  return bytes;
}

bool ListSchedule::fits(OpId op, size_t device) const {
  if (costs_.us(op, device) >= kImpossible) return false;
  if (!limited_) return true;
  const int pool = costs_.pool(device);
  return missing_params(op, pool) <= costs_.param_room(pool) - param_bytes_[static_cast<size_t>(pool)];
}

double ListSchedule::ready_at(OpId op, size_t device) const {
  const auto& graph = *problem_.graph;
  double ready = 0;
  if (limited_ && costs_.load_us_per_byte(device) > 0) {
    const auto bytes = missing_params(op, costs_.pool(device));
    if (bytes > 0) ready = load_done_[device] + costs_.load_us_per_byte(device) * static_cast<double>(bytes);
  }
  for (const auto u : graph.predecessors(op)) {
    double at = finish_[u.index()];
    const auto from = device_[u.index()];
    if (from != device) {
      const auto next = graph.successors(u);
      const auto i = std::lower_bound(next.begin(), next.end(), op) - next.begin();
      at += costs_.transfer_us(from, device, graph.out_edges(u)[static_cast<size_t>(i)].bytes);
    }
    ready = std::max(ready, at);
  }
  return ready;
}

double ListSchedule::earliest_free(size_t device, double from, double duration) const {
  double t = from;
  // Several resources (cores) must be free at once: go on until none objects.
  for (bool moved = true; moved;) {
    moved = false;
    for (const int r : costs_.resources(device)) {
      const auto& busy = busy_[static_cast<size_t>(r)];
      if (busy.empty()) continue;
      if (!insertion_) {
        t = std::max(t, busy.back().finish);
        continue;
      }
      auto it = std::partition_point(busy.begin(), busy.end(), [&](const Busy& b) { return b.finish <= t; });
      for (; it != busy.end() && it->start < t + duration; ++it) {
        t = std::max(t, it->finish);
        moved = true;
      }
    }
  }
  return t;
}

Slot ListSchedule::probe(OpId op, size_t device) const {
  const double duration = costs_.us(op, device);
  if (duration >= kImpossible) return {};
  const double ready = ready_at(op, device);
  if (ready >= kImpossible) return {};
  const double start = earliest_free(device, ready, duration);
  return {start, start + duration};
}

void ListSchedule::place(OpId op, size_t device, const Slot& slot) {
  if (limited_) {
    const int pool = costs_.pool(device);
    const auto bytes = missing_params(op, pool);
    param_bytes_[static_cast<size_t>(pool)] += bytes;
    load_done_[device] += costs_.load_us_per_byte(device) * static_cast<double>(bytes);
    for (const auto p : problem_.graph->op(op).params)
      has_param_[static_cast<size_t>(pool)][p.index()] = true;
  }
  for (const int r : costs_.resources(device)) {
    auto& busy = busy_[static_cast<size_t>(r)];
    const Busy b{slot.start, slot.finish};
    if (busy.empty() || busy.back().finish <= slot.start) {
      busy.push_back(b);
    } else {
      busy.insert(
          std::partition_point(busy.begin(), busy.end(), [&](const Busy& x) { return x.start < b.start; }),
          b);
    }
  }
  device_[op.index()] = device;
  start_[op.index()] = slot.start;
  finish_[op.index()] = slot.finish;
  makespan_ = std::max(makespan_, slot.finish);
}

Assignment ListSchedule::assignment() const {
  Assignment a;
  const auto& graph = *problem_.graph;
  for (const auto d : device_) a.device.push_back(costs_.device(d));
  const auto topo = graph.topological_order();
  a.order.assign(topo.begin(), topo.end());
  // Zero-time ops start when their readers do: the stable sort keeps them in topological order.
  std::stable_sort(a.order.begin(), a.order.end(),
                   [&](OpId x, OpId y) { return start_[x.index()] < start_[y.index()]; });
  return a;
}

std::vector<OpId> priority_order(const Graph& graph, const std::vector<double>& priority) {
  using Entry = std::pair<double, int32_t>;
  const auto less = [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(less)> ready(less);
  std::vector<size_t> waits(graph.num_ops());
  for (size_t v = 0; v < waits.size(); ++v) {
    waits[v] = graph.predecessors(OpId(v)).size();
    if (waits[v] == 0) ready.emplace(priority[v], static_cast<int32_t>(v));
  }
  std::vector<OpId> order;
  order.reserve(waits.size());
  while (!ready.empty()) {
    const OpId v(ready.top().second);
    ready.pop();
    order.push_back(v);
    for (const auto s : graph.successors(v)) {
      if (--waits[s.index()] == 0) ready.emplace(priority[s.index()], s.value);
    }
  }
  return order;
}

std::vector<double> upward_ranks(const Problem& problem, const PlacementCosts& costs) {
  const auto& graph = *problem.graph;
  const auto topo = graph.topological_order();
  std::vector<double> rank(topo.size());
  for (size_t i = topo.size(); i-- > 0;) {
    const auto v = topo[i];
    double tail = 0;
    for (const auto& e : graph.out_edges(v))
      tail = std::max(tail, costs.mean_transfer_us(e.bytes) + rank[e.dst.index()]);
    rank[v.index()] = costs.mean_us(v) + tail;
  }
  return rank;
}

Error no_room(const Problem& problem, OpId op) {
  int64_t need = 0, have = 0;
  bool unlimited = false;
  std::vector<bool> counted(static_cast<size_t>(problem.cluster->num_memory_pools()), false);
  for (const auto& p : problem.graph->params()) need += p.bytes;
  for (const auto d : problem.usable_devices()) {
    const int pool = problem.cluster->memory_pool(d);
    if (counted[static_cast<size_t>(pool)]) continue;
    counted[static_cast<size_t>(pool)] = true;
    const auto bytes = problem.cluster->memory_pool_bytes(pool);
    unlimited |= bytes == 0;
    have += bytes;
  }
  return Error(Code::kInfeasible,
               "no usable device has room for op '" + problem.graph->op(op).name +
                   "' and can run it: the parameters need " + format_bytes(need) + ", the devices hold " +
                   (unlimited ? "enough, but not those that can run it" : format_bytes(have)) +
                   " in all; add devices or memory, or use another planner");
}

}  // namespace heddle
