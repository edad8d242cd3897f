// Whether groups of ops can be contracted without a cycle, by Kahn's algorithm on the quotient.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// group[op] may be any numbers. Convex groups are not enough: two of them can feed each other.
inline bool quotient_is_acyclic(const Graph& graph, std::span<const int> group) {
  // Group numbers may be any ints: replace them by ranks.
  std::vector<int> names(group.begin(), group.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const auto rank = [&](OpId v) {
    return static_cast<size_t>(std::lower_bound(names.begin(), names.end(), group[v.index()]) -
                               names.begin());
  };
  std::vector<size_t> of(group.size());
  for (size_t v = 0; v < group.size(); ++v) of[v] = rank(OpId(v));
  std::vector<std::vector<size_t>> next(names.size());
  std::vector<int> indegree(names.size(), 0);
  for (const auto& e : graph.edges()) {
    const auto a = of[e.src.index()], b = of[e.dst.index()];
    if (a == b) continue;
    next[a].push_back(b);
    ++indegree[b];
  }
  std::vector<size_t> ready;
  for (size_t g = 0; g < names.size(); ++g) {
    if (indegree[g] == 0) ready.push_back(g);
  }
  size_t done = 0;
  while (!ready.empty()) {
    const auto g = ready.back();
    ready.pop_back();
    ++done;
    for (const auto h : next[g]) {
      if (--indegree[h] == 0) ready.push_back(h);
    }
  }
  return done == names.size();
}

}  // namespace heddle
