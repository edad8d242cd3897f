// Analyses of a Graph's op DAG. n = ops, m = distinct edges.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// One bit per (ancestor, descendant) pair. O(n m / 64) time, n^2 / 8 bytes: meant for up to about 50,000 ops.
class Reachability {
 public:
  explicit Reachability(const Graph& graph);
  // True when there is a directed path a -> b of at least one edge.
  bool reaches(OpId a, OpId b) const {
    return (bits_[a.index() * words_ + b.index() / 64] >> (b.index() % 64)) & 1;
  }
  std::span<const uint64_t> row(OpId a) const { return {bits_.data() + a.index() * words_, words_}; }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// Immediate dominators. A virtual root, written as the invalid OpId, precedes all sources; it is the answer
// for sources too. Cooper, Harvey and Kennedy (2001); a DAG needs one pass in topological order: O(m * depth
// of the dominator tree). With a `source`, only paths from there count: the invalid OpId is the answer for the
// source and for the ops that it does not reach.
std::vector<OpId> immediate_dominators(const Graph& graph, OpId source = {});

// Articulation points of the undirected graph, ascending. Tarjan, O(n + m).
std::vector<OpId> articulation_points(const Graph& graph);

// k-edge-connected components of the undirected graph (parallel edges count once): two ops share a component
// when k edge-disjoint paths join them. Returns the component of each op, numbered by smallest member. k = 1:
// connected components; k = 2: components after removing bridges; both O(n + m). k >= 3: maximum flows,
// stopped at k, O(n * components * k * m) at worst: meant for up to a few thousand ops.
std::vector<int> k_edge_connected_components(const Graph& graph, int k);

// Longest paths with weights on ops and edges. longest_to[v] is the weight of the heaviest path that ends
// just before v, without v's own weight; longest_from[v] that of the heaviest path from v on, with v's own.
// O(n + m).
struct LongestPaths {
  std::vector<double> longest_to, longest_from;
  double length = 0;       // of the heaviest path
  std::vector<OpId> path;  // one heaviest path; ties: smallest id
};
LongestPaths longest_paths(const Graph& graph, const std::function<double(OpId)>& op_weight,
                           const std::function<double(const Edge&)>& edge_weight);

// Level of each op: the number of edges on the longest path from a source. O(n + m).
std::vector<int> levels(const Graph& graph);

// A set is convex when no path leaves it and comes back. O(n + m) over the ops between the set's first and
// last topological position.
bool is_convex(const Graph& graph, std::span<const OpId> ops);

}  // namespace heddle
