// Undirected structure: articulation points and bridges by one iterative depth-first search (Tarjan, 1972),
// and k-edge-connected components.
#include <algorithm>
#include <numeric>

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
  explicit DisjointPaths(const std::vector<std::vector<int>>& adjacent)
      : begin_(adjacent.size() + 1, 0), via_(adjacent.size()) {
    for (size_t v = 0; v < adjacent.size(); ++v) begin_[v + 1] = begin_[v] + adjacent[v].size();
    twin_.resize(begin_.back());
    to_.resize(begin_.back());
    for (size_t v = 0; v < adjacent.size(); ++v)
      std::copy(adjacent[v].begin(), adjacent[v].end(), to_.begin() + static_cast<long>(begin_[v]));
    for (size_t v = 0; v < adjacent.size(); ++v) {
      for (size_t a = begin_[v]; a < begin_[v + 1]; ++a) {
        const auto w = static_cast<size_t>(to_[a]);
        for (size_t b = begin_[w]; b < begin_[w + 1]; ++b) {
          if (to_[b] == static_cast<int>(v)) twin_[a] = b;
        }
      }
    }
    flow_.resize(to_.size());
  }

  bool at_least(int s, int t, int k) {
    std::fill(flow_.begin(), flow_.end(), int8_t{0});
    for (int i = 0; i < k; ++i) {
      if (!augment(s, t)) return false;
    }
    return true;
  }

 private:
  bool augment(int s, int t) {
    std::fill(via_.begin(), via_.end(), kUnseen);
    std::vector<int> queue = {s};
    via_[static_cast<size_t>(s)] = kStart;
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto v = static_cast<size_t>(queue[i]);
      for (size_t a = begin_[v]; a < begin_[v + 1]; ++a) {
        const auto w = static_cast<size_t>(to_[a]);
        if (flow_[a] >= 1 || via_[w] != kUnseen) continue;
        via_[w] = a;
        if (to_[a] == t) return push(s, t);
        queue.push_back(to_[a]);
      }
    }
    return false;
  }

  bool push(int s, int t) {
    for (int v = t; v != s;) {
      const auto a = via_[static_cast<size_t>(v)];
      ++flow_[a];
      --flow_[twin_[a]];
      v = to_[twin_[a]];
    }
    return true;
  }

  static constexpr size_t kUnseen = SIZE_MAX, kStart = SIZE_MAX - 1;
  std::vector<size_t> begin_, twin_, via_;
  std::vector<int> to_;
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

std::vector<Edge> bridges(const Graph& graph) {
  const auto links = low_links(undirected(graph));
  std::vector<std::pair<int, int>> pairs;
  for (auto [a, b] : links.bridges) pairs.emplace_back(std::min(a, b), std::max(a, b));
  std::sort(pairs.begin(), pairs.end());
  std::vector<Edge> list;
  for (const auto& e : graph.edges()) {
    const std::pair<int, int> key(std::min(e.src.value, e.dst.value), std::max(e.src.value, e.dst.value));
    if (std::binary_search(pairs.begin(), pairs.end(), key)) list.push_back(e);
  }
  return list;
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
