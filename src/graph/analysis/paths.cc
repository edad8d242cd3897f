#include <algorithm>

#include "heddle/graph/analysis.h"

namespace heddle {

Reachability::Reachability(const Graph& graph)
    : words_((graph.num_ops() + 63) / 64), bits_(words_ * graph.num_ops()) {
  const auto topo = graph.topological_order();
  for (size_t i = topo.size(); i-- > 0;) {
    auto* row = bits_.data() + topo[i].index() * words_;
    for (const auto s : graph.successors(topo[i])) {
      const auto* other = bits_.data() + s.index() * words_;
      for (size_t w = 0; w < words_; ++w) row[w] |= other[w];
      row[s.index() / 64] |= uint64_t{1} << (s.index() % 64);
    }
  }
}

LongestPaths longest_paths(const Graph& graph, const std::function<double(OpId)>& op_weight,
                           const std::function<double(const Edge&)>& edge_weight) {
  const auto topo = graph.topological_order();
  LongestPaths r;
  r.longest_to.assign(topo.size(), 0);
  r.longest_from.assign(topo.size(), 0);
  std::vector<OpId> next(topo.size());
  for (size_t i = topo.size(); i-- > 0;) {
    const auto v = topo[i];
    double tail = 0;
    for (const auto& e : graph.out_edges(v)) {
      const double through = edge_weight(e) + r.longest_from[e.dst.index()];
      // A path of weight 0 is a path too: continue to the first successor.
      if (through > tail || !next[v.index()].valid()) {
        tail = std::max(tail, through);
        next[v.index()] = e.dst;
      }
    }
    r.longest_from[v.index()] = op_weight(v) + tail;
  }
  OpId start;
  for (const auto v : topo) {
    for (const auto& e : graph.out_edges(v)) {
      auto& to = r.longest_to[e.dst.index()];
      to = std::max(to, r.longest_to[v.index()] + op_weight(v) + edge_weight(e));
    }
  }
  for (size_t v = 0; v < topo.size(); ++v) {
    const OpId id(v);
    if (!graph.predecessors(id).empty()) continue;
    if (!start.valid() || r.longest_from[v] > r.longest_from[start.index()]) start = id;
  }
  if (!start.valid()) return r;
  r.length = r.longest_from[start.index()];
  for (auto v = start; v.valid(); v = next[v.index()]) r.path.push_back(v);
  return r;
}

std::vector<int> levels(const Graph& graph) {
  std::vector<int> level(graph.num_ops(), 0);
  for (const auto v : graph.topological_order()) {
    for (const auto s : graph.successors(v))
      level[s.index()] = std::max(level[s.index()], level[v.index()] + 1);
  }
  return level;
}

bool is_convex(const Graph& graph, std::span<const OpId> ops) {
  if (ops.size() < 2) return true;
  int first = graph.topological_position(ops[0]), last = first;
  for (const auto v : ops) {
    first = std::min(first, graph.topological_position(v));
    last = std::max(last, graph.topological_position(v));
  }
  // 1: in the set; 2: outside, but reachable from the set.
  std::vector<uint8_t> mark(static_cast<size_t>(last - first) + 1, 0);
  const auto at = [&](OpId v) -> uint8_t& {
    return mark[static_cast<size_t>(graph.topological_position(v) - first)];
  };
  for (const auto v : ops) at(v) = 1;
  const auto topo = graph.topological_order();
  for (int i = first; i <= last; ++i) {
    const auto v = topo[static_cast<size_t>(i)];
    const auto m = at(v);
    if (m == 0) continue;
    for (const auto s : graph.successors(v)) {
      if (graph.topological_position(s) > last) continue;
      auto& other = at(s);
      if (m == 2 && other == 1) return false;
      if (other == 0) other = 2;
    }
  }
  return true;
}

}  // namespace heddle
