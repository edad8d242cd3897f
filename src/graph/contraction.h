// A graph under contraction: groups of ops, the edges between them, and merges that keep it acyclic.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// Groups are named by one of their ops; find() gives a group's current name. Merging costs the smaller group's degree.
class Contraction {
 public:
  explicit Contraction(const Graph& graph);

  int find(int op) const;
  size_t num_groups() const { return groups_; }
  const std::map<int, int64_t>& successors(int group) const { return out_[static_cast<size_t>(group)]; }    // -> bytes
  const std::map<int, int64_t>& predecessors(int group) const { return in_[static_cast<size_t>(group)]; }

  // Would uniting a and b leave an acyclic quotient? True without a search when one's only neighbour on that side is the
  // other; otherwise looks for a path between them through a third group, within their positions. O(groups between) at worst.
  bool may_merge(int a, int b) const;
  // The name of the united group. Only after may_merge().
  int merge(int a, int b);

  // Numbers 0..k-1 by the first op, in topological order.
  std::vector<int> numbering() const;

 private:
  bool path_through_third(int from, int to) const;
  const Graph& graph_;
  mutable std::vector<int> parent_;
  std::vector<std::map<int, int64_t>> out_, in_;
  std::vector<int> first_, last_;      // topological positions of a group's first and last op
  mutable std::vector<int> visited_;   // round in which a search saw the group
  mutable int round_ = 0;
  size_t groups_;
};

}  // namespace heddle
