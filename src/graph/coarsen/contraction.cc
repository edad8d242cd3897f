#include "contraction.h"

#include <algorithm>
#include <numeric>

namespace heddle {

Contraction::Contraction(const Graph& graph)
    : graph_(graph),
      parent_(graph.num_ops()),
      out_(graph.num_ops()),
      in_(graph.num_ops()),
      order_(graph.num_ops()),
      rank_(graph.num_ops()),
      visited_(graph.num_ops(), 0),
      groups_(graph.num_ops()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (size_t v = 0; v < parent_.size(); ++v) {
    rank_[v] = graph.topological_position(OpId(v));
    order_[static_cast<size_t>(rank_[v])] = static_cast<int>(v);
  }
  for (const auto& e : graph.edges()) {
    out_[e.src.index()][e.dst.value] += e.bytes;
    in_[e.dst.index()][e.src.value] += e.bytes;
  }
}

int Contraction::find(int op) const {
  while (parent_[static_cast<size_t>(op)] != op) {
    auto& p = parent_[static_cast<size_t>(op)];
    p = parent_[static_cast<size_t>(p)];
    op = p;
  }
  return op;
}

bool Contraction::path_through_third(int from, int to) const {
  ++round_;
  const int limit = rank_[static_cast<size_t>(to)];
  bool found = false;
  std::vector<int> stack = {from};
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    for (const auto& [next, bytes] : out_[static_cast<size_t>(g)]) {
      if (next == to && g != from) found = true;
      auto& visited = visited_[static_cast<size_t>(next)];
      if (rank_[static_cast<size_t>(next)] >= limit || visited == round_) continue;
      visited = round_;
      stack.push_back(next);
    }
  }
  return found;
}

bool Contraction::may_merge(int a, int b) const {
  if (a == b) return false;
  if (rank_[static_cast<size_t>(a)] > rank_[static_cast<size_t>(b)]) std::swap(a, b);
  // No path leads from b to a: edges only lead to higher ranks.
  const auto& out_a = out_[static_cast<size_t>(a)];
  if (out_a.count(b) && (out_a.size() == 1 || in_[static_cast<size_t>(b)].size() == 1)) return true;
  return !path_through_third(a, b);
}

// Renumbers the ranks between `low` and `high`: groups that `low` reaches move behind the united group, all
// others before it; both keep their order. No group that `low` reaches leads to `high` (may_merge), so every
// edge still leads to a higher rank.
void Contraction::rank_merged(int low, int high, int united) {
  path_through_third(low, high);
  const int begin = rank_[static_cast<size_t>(low)], end = rank_[static_cast<size_t>(high)];
  std::vector<int> before, after;
  for (int r = begin; r <= end; ++r) {
    const int g = order_[static_cast<size_t>(r)];
    if (g < 0 || g == low || g == high) continue;
    (visited_[static_cast<size_t>(g)] == round_ ? after : before).push_back(g);
  }
  before.push_back(united);
  before.insert(before.end(), after.begin(), after.end());
  for (int r = begin; r <= end; ++r) {
    const auto i = static_cast<size_t>(r - begin);
    order_[static_cast<size_t>(r)] = i < before.size() ? before[i] : -1;
    if (i < before.size()) rank_[static_cast<size_t>(before[i])] = r;
  }
}

int Contraction::merge(int a, int b) {
  const auto degree = [&](int g) {
    return out_[static_cast<size_t>(g)].size() + in_[static_cast<size_t>(g)].size();
  };
  if (degree(a) < degree(b)) std::swap(a, b);
  const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
  parent_[ib] = a;
  --groups_;
  const bool a_first = rank_[ia] < rank_[ib];
  rank_merged(a_first ? a : b, a_first ? b : a, a);
  out_[ia].erase(b);
  in_[ia].erase(b);
  for (const auto& [next, bytes] : out_[ib]) {
    if (next == a) continue;
    out_[ia][next] += bytes;
    auto& back = in_[static_cast<size_t>(next)];
    back.erase(b);
    back[a] += bytes;
  }
  for (const auto& [before, bytes] : in_[ib]) {
    if (before == a) continue;
    in_[ia][before] += bytes;
    auto& forth = out_[static_cast<size_t>(before)];
    forth.erase(b);
    forth[a] += bytes;
  }
  out_[ib].clear();
  in_[ib].clear();
  return a;
}

std::vector<int> Contraction::numbering() const {
  std::vector<int> number(parent_.size(), -1), group(parent_.size());
  int next = 0;
  for (const auto v : graph_.topological_order()) {
    auto& n = number[static_cast<size_t>(find(v.value))];
    if (n < 0) n = next++;
    group[v.index()] = n;
  }
  return group;
}

}  // namespace heddle
