#include "placement_units.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace heddle {
namespace {

class UnionFind {
 public:
  explicit UnionFind(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t find(int32_t v) {
    while (parent_[at(v)] != v) v = parent_[at(v)] = parent_[at(parent_[at(v)])];
    return v;
  }
  // The smaller index represents both.
  void join(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    parent_[at(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

using Adjacency = std::vector<std::vector<int32_t>>;

// Kosaraju: vertices by finishing time, then components of the reversed graph.
// Whether there was a cycle.
bool join_cycles(const Adjacency& out, const Adjacency& in, UnionFind& joined) {
  bool found = false;
  const size_t n = out.size();
  std::vector<char> seen(n, 0);
  std::vector<int32_t> finished;
  std::vector<std::pair<int32_t, size_t>> stack;
  for (size_t root = 0; root < n; ++root) {
    if (seen[root]) continue;
    seen[root] = 1;
    stack.emplace_back(static_cast<int32_t>(root), 0);
    while (!stack.empty()) {
      auto& [v, next] = stack.back();
      if (next == out[at(v)].size()) {
        finished.push_back(v);
        stack.pop_back();
      } else if (const auto w = out[at(v)][next++]; !seen[at(w)]) {
        seen[at(w)] = 1;
        stack.emplace_back(w, 0);
      }
    }
  }
  std::fill(seen.begin(), seen.end(), 0);
  for (auto it = finished.rbegin(); it != finished.rend(); ++it) {
    if (seen[at(*it)]) continue;
    std::vector<int32_t> component{*it};
    seen[at(*it)] = 1;
    for (size_t i = 0; i < component.size(); ++i) {
      joined.join(*it, component[i]);
      found = found || i > 0;
      for (const auto u : in[at(component[i])]) {
        if (seen[at(u)]) continue;
        seen[at(u)] = 1;
        component.push_back(u);
      }
    }
  }
  return found;
}

class UnitContraction {
 public:
  UnitContraction(const PlacementGraph& w, PlacementOrder order)
      : w_(w), ordered_(order != PlacementOrder::kNone), joined_(w.nodes.size()) {
    std::vector<int32_t> first(at(w.colours), -1);
    for (size_t v = 0; v < w.nodes.size(); ++v) {
      const auto colour = w.nodes[v].colour;
      if (colour < 0) continue;
      if (first[at(colour)] < 0) first[at(colour)] = static_cast<int32_t>(v);
      joined_.join(first[at(colour)], static_cast<int32_t>(v));
    }
    if (ordered_) {
      if (order == PlacementOrder::kPieces) {
        order_ = w.edges;
      } else {
        collect_order();
      }
      Adjacency out(w.nodes.size()), in(w.nodes.size());
      for (const auto& [u, v] : order_) {
        out[at(joined_.find(u))].push_back(joined_.find(v));
        in[at(joined_.find(v))].push_back(joined_.find(u));
      }
      joined_cycles_ = join_cycles(out, in, joined_);
    }
    double bytes = 0;
    for (const auto& node : w.nodes) bytes += node.bytes;
    memory_binds_ = bytes > w.accelerator_bytes;
  }

  PlacementUnits run() {
    for (;;) {
      PlacementUnits units = build();
      if (!merge_idle(units)) return units;
    }
  }

 private:
  void collect_order() {
    std::vector<bool> has_forward(at(w_.colours), false);
    for (const auto& node : w_.nodes)
      if (!node.backward && node.colour >= 0) has_forward[at(node.colour)] = true;
    const auto orphan = [&](int32_t v) {
      const auto& node = w_.nodes[at(v)];
      return node.backward && (node.colour < 0 || !has_forward[at(node.colour)]);
    };
    for (const auto& [u, v] : w_.edges) {
      const bool from = w_.nodes[at(u)].backward, to = w_.nodes[at(v)].backward;
      if (!from && !to) order_.emplace_back(u, v);
      if (from && to && (orphan(u) || orphan(v))) order_.emplace_back(v, u);
    }
  }

  PlacementUnits build() {
    PlacementUnits units;
    units.joined_cycles = joined_cycles_;
    units.accelerators = w_.accelerators;
    units.cpus = w_.cpus;
    units.accelerator_bytes = w_.accelerator_bytes;
    const auto unit_of = number_units();
    const size_t n = count_;
    units.members.resize(n);
    units.accelerator.assign(n, 0);
    units.cpu.assign(n, 0);
    units.bytes.assign(n, 0);
    units.on_accelerator.assign(n, true);
    units.nets_of.resize(n);
    for (size_t v = 0; v < w_.nodes.size(); ++v) {
      const auto u = at(unit_of[v]);
      units.members[u].push_back(static_cast<int32_t>(v));
      units.accelerator[u] += w_.nodes[v].accelerator;
      units.cpu[u] += w_.nodes[v].cpu;
      units.bytes[u] += w_.nodes[v].bytes;
      if (!w_.nodes[v].on_accelerator) units.on_accelerator[u] = false;
    }
    std::map<std::vector<int32_t>, double> nets;
    for (size_t v = 0; v < w_.nodes.size(); ++v) {
      if (w_.nodes[v].cost <= 0) continue;
      std::vector<int32_t> pins{unit_of[v]};
      for (const auto consumer : w_.out[v]) pins.push_back(unit_of[at(consumer)]);
      std::sort(pins.begin(), pins.end());
      pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
      if (pins.size() > 1) nets[pins] += w_.nodes[v].cost;
    }
    for (const auto& [pins, cost] : nets) {
      for (const auto pin : pins) units.nets_of[at(pin)].push_back(static_cast<int32_t>(units.nets.size()));
      units.nets.push_back({cost, pins});
    }
    if (ordered_) {
      units.next.resize(n);
      units.previous.resize(n);
      std::set<std::pair<int32_t, int32_t>> edges;
      for (const auto& [u, v] : order_)
        if (unit_of[at(u)] != unit_of[at(v)]) edges.emplace(unit_of[at(u)], unit_of[at(v)]);
      for (const auto& [u, v] : edges) {
        units.next[at(u)].push_back(v);
        units.previous[at(v)].push_back(u);
      }
    }
    return units;
  }

  // By node; contiguous: topologically, ties by the smallest member's place in the workload's order.
  std::vector<int32_t> number_units() {
    const size_t n = w_.nodes.size();
    std::vector<int32_t> rank(n), best(n, static_cast<int32_t>(n));
    for (size_t i = 0; i < n; ++i) rank[at(w_.order[i])] = static_cast<int32_t>(i);
    for (size_t v = 0; v < n; ++v) {
      auto& b = best[at(joined_.find(static_cast<int32_t>(v)))];
      b = std::min(b, rank[v]);
    }
    std::vector<int32_t> waiting(n, 0), number(n, -1);
    std::vector<std::vector<int32_t>> out(n);
    for (const auto& [u, v] : order_) {
      const auto a = joined_.find(u), b = joined_.find(v);
      if (a == b) continue;
      out[at(a)].push_back(b);
      ++waiting[at(b)];
    }
    std::set<std::pair<int32_t, int32_t>> ready;
    for (size_t v = 0; v < n; ++v) {
      const auto root = static_cast<int32_t>(v);
      if (joined_.find(root) == root && waiting[v] == 0) ready.emplace(best[v], root);
    }
    count_ = 0;
    while (!ready.empty()) {
      const auto root = ready.begin()->second;
      ready.erase(ready.begin());
      number[at(root)] = static_cast<int32_t>(count_++);
      for (const auto b : out[at(root)])
        if (--waiting[at(b)] == 0) ready.emplace(best[at(b)], b);
    }
    std::vector<int32_t> unit_of(n);
    for (size_t v = 0; v < n; ++v) unit_of[v] = number[at(joined_.find(static_cast<int32_t>(v)))];
    return unit_of;
  }

  // Moving such a unit to the other's device adds nothing there, and frees its own of the nets' costs.
  bool merge_idle(const PlacementUnits& units) {
    bool merged = false;
    // A host has new nets, which its own host need not be in: it waits for the next round.
    std::vector<char> is_host(units.size(), 0);
    for (size_t x = 0; x < units.size(); ++x) {
      if (is_host[x] || units.accelerator[x] > 0 || units.cpu[x] > 0 || !units.on_accelerator[x]) continue;
      if (units.bytes[x] > 0 && memory_binds_) continue;
      const auto y = host_of(units, static_cast<int32_t>(x));
      if (y < 0) continue;
      joined_.join(units.members[x].front(), units.members[at(y)].front());
      is_host[at(y)] = 1;
      merged = true;
    }
    return merged;
  }

  int32_t host_of(const PlacementUnits& units, int32_t x) const {
    std::vector<int32_t> hosts;
    bool first = true;
    for (const auto net : units.nets_of[at(x)]) {
      const auto& pins = units.nets[at(net)].pins;
      if (first) {
        hosts = pins;
        first = false;
        continue;
      }
      std::vector<int32_t> both;
      std::set_intersection(hosts.begin(), hosts.end(), pins.begin(), pins.end(), std::back_inserter(both));
      hosts = std::move(both);
    }
    std::erase(hosts, x);
    if (ordered_) {
      auto around = units.next[at(x)];
      around.insert(around.end(), units.previous[at(x)].begin(), units.previous[at(x)].end());
      if (around.size() > 1) return -1;
      if (around.size() == 1) {
        const bool fits = first || std::find(hosts.begin(), hosts.end(), around[0]) != hosts.end();
        return fits ? around[0] : -1;
      }
    }
    // Without nets and neighbours it may be anywhere.
    if (first && units.size() > 1) return x == 0 ? 1 : 0;
    return hosts.empty() ? -1 : hosts.front();
  }

  const PlacementGraph& w_;
  bool ordered_, memory_binds_ = false, joined_cycles_ = false;
  UnionFind joined_;
  std::vector<std::pair<int32_t, int32_t>> order_;  // edges between nodes that the devices' order respects
  size_t count_ = 0;
};

}  // namespace

PlacementUnits make_placement_units(const PlacementGraph& workload, PlacementOrder order) {
  return UnitContraction(workload, order).run();
}

PlacementSplit split_of_units(const PlacementGraph& workload, const PlacementUnits& units,
                              const std::vector<int32_t>& device_of_unit) {
  PlacementSplit split;
  split.device.resize(workload.nodes.size());
  for (size_t u = 0; u < units.size(); ++u)
    for (const auto v : units.members[u]) split.device[at(v)] = device_of_unit[u];
  return split;
}

std::vector<int32_t> units_of_split(const PlacementUnits& units, const PlacementSplit& split) {
  std::vector<int32_t> device(units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    device[u] = split.device[at(units.members[u].front())];
    for (const auto v : units.members[u])
      if (split.device[at(v)] != device[u]) return {};
  }
  return device;
}

}  // namespace heddle
