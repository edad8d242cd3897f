// A graph under contraction: groups of ops, the edges between them, and merges that keep it acyclic.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// Groups are named by one of their ops; find() gives a group's current name. Merging costs the smaller
// group's degree.
class Contraction {
 public:
  explicit Contraction(const Graph& graph);

  int find(int op) const;
  size_t num_groups() const { return groups_; }
  const std::map<int, int64_t>& successors(int group) const {
    return out_[static_cast<size_t>(group)];
  }  // -> bytes
  const std::map<int, int64_t>& predecessors(int group) const { return in_[static_cast<size_t>(group)]; }

  // Would uniting a and b leave an acyclic quotient? True without a search when one's only neighbour on that
  // side is the other; otherwise looks for a path through a third group, which is ranked between them.
  // O(groups between) at worst.
  bool may_merge(int a, int b) const;
  // The name of the united group. Only after may_merge(). O(groups ranked between, and their edges) beside
  // the degrees.
  int merge(int a, int b);

  // Numbers 0..k-1 by the first op, in topological order.
  std::vector<int> numbering() const;

 private:
  // Marks with a new round what `from` reaches by groups ranked before `to`; true when one of those leads to
  // `to`.
  bool path_through_third(int from, int to) const;
  void rank_merged(int low, int high, int united);
  const Graph& graph_;
  mutable std::vector<int> parent_;
  std::vector<std::map<int, int64_t>> out_, in_;
  // A topological order of the quotient, kept up to date: every edge leads to a higher rank. Spans of
  // positions in the graph would not do: a group may start before another, end after it and still be neither
  // before nor after.
  std::vector<int> order_, rank_;     // rank -> group (-1: none any more), group -> rank
  mutable std::vector<int> visited_;  // round in which a search saw the group
  mutable int round_ = 0;
  size_t groups_;
};

}  // namespace heddle
