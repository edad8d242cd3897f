// Undirected structure: articulation points and bridges by one iterative depth-first search (Tarjan, 1972),
// and k-edge-connected components.
#include <algorithm>

#include "heddle/graph/analysis.h"

namespace heddle {
namespace {

// The undirected graph: parallel edges count once. (Opposite edges cannot occur in an acyclic graph.)
std::vector<std::vector<int>> undirected(const Graph& graph) {
  std::vector<std::vector<int>> adjacent(graph.num_ops());
  for (const auto& e : graph.edges()) {
    adjacent[e.src.index()].push_back(e.dst.value);
    adjacent[e.dst.index()].push_back(e.src.value);
  }
  return adjacent;
}

struct LowLinks {
  std::vector<bool> articulation;
  std::vector<std::pair<int, int>> bridges;
};

LowLinks low_links(const std::vector<std::vector<int>>& adjacent) {
  const auto n = adjacent.size();
  LowLinks r;
  r.articulation.assign(n, false);
  std::vector<int> number(n, -1), low(n), parent(n, -1);
  std::vector<size_t> next(n, 0);
  int clock = 0;
  for (size_t root = 0; root < n; ++root) {
    if (number[root] >= 0) continue;
    int root_children = 0;
    std::vector<int> stack = {static_cast<int>(root)};
    number[root] = low[root] = clock++;
    while (!stack.empty()) {
      const auto v = static_cast<size_t>(stack.back());
      if (next[v] < adjacent[v].size()) {
        const int w = adjacent[v][next[v]++];
        const auto iw = static_cast<size_t>(w);
        if (number[iw] < 0) {
          parent[iw] = static_cast<int>(v);
          root_children += v == root;
          number[iw] = low[iw] = clock++;
          stack.push_back(w);
        } else if (w != parent[v]) {
          low[v] = std::min(low[v], number[iw]);
        }
        continue;
      }
      stack.pop_back();
      if (parent[v] < 0) continue;
      const auto p = static_cast<size_t>(parent[v]);
      low[p] = std::min(low[p], low[v]);
      if (low[v] > number[p]) r.bridges.emplace_back(static_cast<int>(p), static_cast<int>(v));
      if (p != root && low[v] >= number[p]) r.articulation[p] = true;
    }
    if (root_children > 1) r.articulation[root] = true;
  }
  return r;
}

std::vector<int> connected(const std::vector<std::vector<int>>& adjacent) {
  std::vector<int> component(adjacent.size(), -1);
  int count = 0;
  for (size_t v = 0; v < adjacent.size(); ++v) {
    if (component[v] >= 0) continue;
    std::vector<size_t> stack = {v};
    component[v] = count;
    while (!stack.empty()) {
      const auto u = stack.back();
      stack.pop_back();
      for (const int w : adjacent[u]) {
        if (component[static_cast<size_t>(w)] < 0) {
          component[static_cast<size_t>(w)] = count;
          stack.push_back(static_cast<size_t>(w));
        }
      }
    }
    ++count;
  }
  return component;
}

// True if at least k edge-disjoint paths join two ops: unit-capacity flow by at most k breadth-first
// searches.
class DisjointPaths {
 public:
  explicit DisjointPaths(const std::vector<std::vector<int>>& adjacent) : arcs_(adjacent.size()) {
    for (size_t v = 0; v < adjacent.size(); ++v) {
      for (const int w : adjacent[v]) {
        if (static_cast<size_t>(w) < v) continue;  // each edge once
        arcs_[v].push_back(to_.size());
        to_.push_back(w);
        arcs_[static_cast<size_t>(w)].push_back(to_.size());
        to_.push_back(static_cast<int>(v));
      }
    }
  }

  bool at_least(int s, int t, int k) {
    flow_.assign(to_.size(), 0);
    for (int i = 0; i < k; ++i) {
      if (!augment(s, t)) return false;
    }
    return true;
  }

 private:
  bool augment(int s, int t) {
    via_.assign(arcs_.size(), kUnseen);
    std::vector<int> queue = {s};
    via_[static_cast<size_t>(s)] = kStart;
    for (size_t i = 0; i < queue.size() && via_[static_cast<size_t>(t)] == kUnseen; ++i) {
      for (const size_t a : arcs_[static_cast<size_t>(queue[i])]) {
        auto& via = via_[static_cast<size_t>(to_[a])];
        if (flow_[a] >= 1 || via != kUnseen) continue;
        via = a;
        queue.push_back(to_[a]);
      }
    }
    if (via_[static_cast<size_t>(t)] == kUnseen) return false;
    for (int v = t; v != s;) {
      const size_t a = via_[static_cast<size_t>(v)], back = a ^ 1;
      ++flow_[a];
      --flow_[back];
      v = to_[back];
    }
    return true;
  }

  static constexpr size_t kUnseen = SIZE_MAX, kStart = SIZE_MAX - 1;
  std::vector<std::vector<size_t>> arcs_;  // of each op
  std::vector<int> to_;                    // of each arc; arcs 2e and 2e + 1 are the directions of edge e
  std::vector<size_t> via_;                // the arc by which an op was reached
  std::vector<int8_t> flow_;
};

// "At least k edge-disjoint paths" is an equivalence relation, so each op is compared with only one op of
// each class of its part.
void split(DisjointPaths& paths, const std::vector<int>& members, int k, std::vector<int>& component,
           int& count) {
  std::vector<std::pair<int, int>> classes;  // an op and its class
  for (const int v : members) {
    int found = -1;
    for (const auto& [op, number] : classes) {
      if (paths.at_least(op, v, k)) {
        found = number;
        break;
      }
    }
    if (found < 0) classes.emplace_back(v, found = count++);
    component[static_cast<size_t>(v)] = found;
  }
}

}  // namespace

std::vector<OpId> articulation_points(const Graph& graph) {
  const auto links = low_links(undirected(graph));
  std::vector<OpId> points;
  for (size_t v = 0; v < links.articulation.size(); ++v) {
    if (links.articulation[v]) points.emplace_back(v);
  }
  return points;
}

std::vector<int> k_edge_connected_components(const Graph& graph, int k) {
  const auto adjacent = undirected(graph);
  const auto n = adjacent.size();
  if (k <= 1) return connected(adjacent);
  // Remove bridges first: this splits most real models into small parts.
  auto without = adjacent;
  for (const auto& [a, b] : low_links(adjacent).bridges) {
    std::erase(without[static_cast<size_t>(a)], b);
    std::erase(without[static_cast<size_t>(b)], a);
  }
  auto component = connected(without);
  if (k > 2) {
    std::vector<std::vector<int>> parts(n);
    for (size_t v = 0; v < n; ++v) parts[static_cast<size_t>(component[v])].push_back(static_cast<int>(v));
    DisjointPaths paths(without);
    int count = 0;
    for (const auto& part : parts) split(paths, part, k, component, count);
  }
  // Number by smallest member.
  std::vector<int> number(n, -1);
  int next = 0;
  for (size_t v = 0; v < n; ++v) {
    auto& c = number[static_cast<size_t>(component[v])];
    if (c < 0) c = next++;
    component[v] = c;
  }
  return component;
}

}  // namespace heddle
