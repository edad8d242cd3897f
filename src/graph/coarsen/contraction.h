// A graph under contraction: groups of ops, the edges between them, and merges that keep it acyclic.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// A group is named by one of its ops; find() gives an op's group by its current name. The edge updates of a
// merge cost the smaller group's degree.
class Contraction {
 public:
  explicit Contraction(const Graph& graph);

  int find(int op) const;
  size_t num_groups() const { return groups_; }
  const std::map<int, int64_t>& successors(int group) const {
    return out_[static_cast<size_t>(group)];
  }  // -> bytes
  const std::map<int, int64_t>& predecessors(int group) const { return in_[static_cast<size_t>(group)]; }

  // True when the quotient stays acyclic if a and b are united. Needs no search when one of them is the only
  // neighbour of the other on that side. Otherwise searches for a path from one to the other through a third
  // group; only groups ranked between the two can be on it. O(groups between) at worst.
  bool may_merge(int a, int b) const;
  // Returns the name of the united group. Call only after may_merge(a, b) was true. O(groups ranked between
  // and their edges), plus the smaller group's degree.
  int merge(int a, int b);

  // Groups numbered 0..k-1 in topological order of their first ops.
  std::vector<int> numbering() const;

 private:
  // Marks, under a new round number, every group that `from` reaches through groups ranked before `to`. True
  // when one of those groups leads to `to`.
  bool path_through_third(int from, int to) const;
  void rank_merged(int low, int high, int united);
  const Graph& graph_;
  mutable std::vector<int> parent_;
  std::vector<std::map<int, int64_t>> out_, in_;
  // A topological order of the quotient, kept up to date: every edge leads to a higher rank. The positions of
  // a group's ops in the graph could not replace it: two groups' spans may overlap although neither group
  // precedes the other.
  std::vector<int> order_, rank_;     // rank -> group (-1: unused), group -> rank
  mutable std::vector<int> visited_;  // round of the last search that reached the group
  mutable int round_ = 0;
  size_t groups_;
};

}  // namespace heddle
