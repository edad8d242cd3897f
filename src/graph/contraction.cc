#include "contraction.h"

#include <algorithm>
#include <numeric>

namespace heddle {

Contraction::Contraction(const Graph& graph)
    : graph_(graph), parent_(graph.num_ops()), out_(graph.num_ops()), in_(graph.num_ops()), first_(graph.num_ops()),
      last_(graph.num_ops()), visited_(graph.num_ops(), 0), groups_(graph.num_ops()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (size_t v = 0; v < parent_.size(); ++v) first_[v] = last_[v] = graph.topological_position(OpId(v));
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
  const int last = last_[static_cast<size_t>(to)];
  std::vector<int> stack;
  for (const auto& [next, bytes] : out_[static_cast<size_t>(from)]) {
    if (next != to) stack.push_back(next);
  }
  while (!stack.empty()) {
    const auto g = static_cast<size_t>(stack.back());
    stack.pop_back();
    if (visited_[g] == round_) continue;
    visited_[g] = round_;
    for (const auto& [next, bytes] : out_[g]) {
      if (next == to) return true;
      // What starts after `to` has ended cannot lead back to it.
      if (visited_[static_cast<size_t>(next)] != round_ && first_[static_cast<size_t>(next)] < last) stack.push_back(next);
    }
  }
  return false;
}

bool Contraction::may_merge(int a, int b) const {
  if (a == b) return false;
  const auto& out_a = out_[static_cast<size_t>(a)];
  if (in_[static_cast<size_t>(a)].count(b)) return may_merge(b, a);
  if (out_a.count(b)) {
    if (out_a.size() == 1 || in_[static_cast<size_t>(b)].size() == 1) return true;
    return !path_through_third(a, b);
  }
  return !path_through_third(a, b) && !path_through_third(b, a);
}

int Contraction::merge(int a, int b) {
  const auto degree = [&](int g) { return out_[static_cast<size_t>(g)].size() + in_[static_cast<size_t>(g)].size(); };
  if (degree(a) < degree(b)) std::swap(a, b);
  const auto ia = static_cast<size_t>(a), ib = static_cast<size_t>(b);
  parent_[ib] = a;
  --groups_;
  first_[ia] = std::min(first_[ia], first_[ib]);
  last_[ia] = std::max(last_[ia], last_[ib]);
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
