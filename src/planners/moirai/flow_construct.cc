
#include <algorithm>
#include <numeric>
#include <queue>

#include "flow_methods.h"

namespace heddle {
namespace {

// Upward ranks (Topcuoglu 2002, equation 8): mean times over devices and over pairs of devices.
std::vector<double> ranks(const FlowWorkload& w, const FlowAdjacency& around, double transfer_weight) {
  const size_t k = w.num_devices();
  std::vector<double> rank(w.num_ops(), 0);
  for (size_t v = w.num_ops(); v-- > 0;) {
    double after = 0;
    for (const uint32_t q : around.out(v)) {
      double mean = 0;
      for (uint32_t i = 0; i < k; ++i) {
        for (uint32_t j = 0; j < k; ++j) mean += static_cast<double>(w.flow_ticks(q, i, j));
      }
      mean *= transfer_weight / static_cast<double>(k > 1 ? k * (k - 1) : 1);
      after = std::max(after, mean + rank[w.flows[q].to]);
    }
    double mean = 0;
    for (const int64_t t : w.ops[v].ticks) mean += static_cast<double>(t);
    rank[v] = mean / static_cast<double>(k) + after;
  }
  return rank;
}

std::vector<uint32_t> by_rank(const FlowWorkload& w, const FlowAdjacency& around,
                              const std::vector<double>& rank) {
  const auto later = [&](uint32_t a, uint32_t b) { return rank[a] != rank[b] ? rank[a] < rank[b] : a > b; };
  std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(later)> ready(later);
  std::vector<uint32_t> missing(w.num_ops(), 0), order;
  for (const auto& f : w.flows) ++missing[f.to];
  for (uint32_t v = 0; v < missing.size(); ++v) {
    if (missing[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const uint32_t q : around.out(v)) {
      if (--missing[w.flows[q].to] == 0) ready.push(w.flows[q].to);
    }
  }
  return order;
}

// Each op where it, and the least that must follow it, ends first, its flows waiting for their ports.
// `room` is what each device can still take; false when an op fits nowhere.
bool list_schedule(const FlowWorkload& w, const FlowAdjacency& around, const std::vector<uint32_t>& order,
                   const std::vector<int64_t>& remaining, std::vector<uint32_t>& device) {
  const size_t k = w.num_devices();
  std::vector<int64_t> free(k, 0), egress(k, 0), ingress(k, 0), end(w.num_ops(), 0), out(k);
  auto room = w.memory;
  device.assign(w.num_ops(), 0);
  const auto arrival = [&](uint32_t v, uint32_t to, bool commit) {
    out = egress;
    int64_t in = ingress[to], ready = 0;
    for (const uint32_t q : around.in(v)) {
      const uint32_t source = w.flows[q].from, from = device[source];
      int64_t done = end[source];
      if (w.crosses(q, from, to)) {
        done = std::max({done, out[from], in}) + w.flow_ticks(q, from, to);
        out[from] = in = done;
      }
      ready = std::max(ready, done);
    }
    if (commit) {
      egress = out;
      ingress[to] = in;
    }
    return ready;
  };
  for (const uint32_t v : order) {
    int64_t best = kNever;
    uint32_t chosen = UINT32_MAX;
    for (uint32_t i = 0; i < k; ++i) {
      if (w.ops[v].memory > room[i]) continue;
      const int64_t finish = std::max(free[i], arrival(v, i, false)) + w.ops[v].ticks[i];
      if (finish + remaining[v * k + i] < best) {
        best = finish + remaining[v * k + i];
        chosen = i;
      }
    }
    if (chosen == UINT32_MAX) return false;
    end[v] = free[chosen] = std::max(free[chosen], arrival(v, chosen, true)) + w.ops[v].ticks[chosen];
    room[chosen] -= w.ops[v].memory;
    device[v] = chosen;
  }
  return true;
}

// Largest ops first, each where the least room stays that still holds it.
bool pack(const FlowWorkload& w, std::vector<uint32_t>& device) {
  std::vector<uint32_t> ops(w.num_ops());
  std::iota(ops.begin(), ops.end(), 0);
  std::stable_sort(ops.begin(), ops.end(),
                   [&](uint32_t a, uint32_t b) { return w.ops[a].memory > w.ops[b].memory; });
  auto room = w.memory;
  device.assign(w.num_ops(), 0);
  for (const uint32_t v : ops) {
    size_t best = room.size();
    for (size_t i = 0; i < room.size(); ++i) {
      if (room[i] >= w.ops[v].memory && (best == room.size() || room[i] < room[best])) best = i;
    }
    if (best == room.size()) return false;
    room[best] -= w.ops[v].memory;
    device[v] = static_cast<uint32_t>(best);
  }
  return true;
}

// The order that gives each device's ops in this order, every op directly after its flows.
std::vector<uint32_t> order_of_ops(const FlowWorkload& w, const FlowAdjacency& around,
                                   const std::vector<uint32_t>& ops) {
  std::vector<uint32_t> order;
  order.reserve(w.num_tasks());
  for (const uint32_t v : ops) {
    for (const uint32_t q : around.in(v)) order.push_back(static_cast<uint32_t>(w.num_ops()) + q);
    order.push_back(v);
  }
  return order;
}

}  // namespace

std::vector<FlowDecisions> construct_flows(const FlowWorkload& w) {
  const FlowAdjacency around(w);
  const auto ranked = by_rank(w, around, ranks(w, around, 1));
  const auto order = order_of_ops(w, around, ranked);
  std::vector<FlowDecisions> found;
  double total = 0;
  for (const auto& op : w.ops) total += op.memory;
  for (uint32_t i = 0; i < w.num_devices(); ++i) {
    if (total <= w.memory[i]) found.push_back({std::vector<uint32_t>(w.num_ops(), i), order});
  }
  FlowDecisions listed;
  const std::vector<int64_t> nothing(w.num_ops() * w.num_devices(), 0);
  for (const double weight : {1.0, 0.0}) {
    const auto ops = by_rank(w, around, ranks(w, around, weight));
    listed.order = order_of_ops(w, around, ops);
    if (list_schedule(w, around, ops, nothing, listed.device)) found.push_back(listed);
    if (list_schedule(w, around, ops, least_remaining(w), listed.device)) found.push_back(listed);
  }
  if (found.empty() && pack(w, listed.device)) found.push_back({listed.device, order});
  return found;
}

}  // namespace heddle
