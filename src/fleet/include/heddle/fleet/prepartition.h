// A model's ops grouped into a few blocks of about equal time, between which fleet plans may cut (PPipe,
// ATC'25, section 5.2).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

enum class PrepartitionMethod {
  kGreedy,   // the paper: ops in order, each block as close to 1/N of the time as it gets, on one class
  kBalanced  // the published planner: the least sum of cut bytes with every block near 1/N of the time on all
             // classes
};
std::optional<PrepartitionMethod> prepartition_method_named(std::string_view name);  // "greedy", "balanced"

struct Prepartition {
  std::vector<std::vector<OpId>> blocks;  // ops of each, ascending; every op in one
  std::vector<double>
      cut_bytes;  // blocks + 1: what crosses each cut, [0] the model's inputs, [N] its outputs
  std::vector<double> parameter_bytes;  // of each block; a parameter that two blocks share counts in both
  double window = 0;                    // kBalanced: every block's time is within 1 +- window of 1/N
};

// `us` is [class][op] on a whole device, finite and not negative. Cuts are places in the graph's topological
// order; a tensor that several later blocks read crosses each cut up to the last of them once. Fewer blocks
// than `blocks` come of a graph with fewer ops (or, greedily, with very unequal ones). kBalanced starts with
// a window of 10 % and widens it until there is a partition; it solves the published MILP exactly, as cuts
// lie on one line: O(blocks * ops^2).
Result<Prepartition> prepartition(const Graph& graph, const std::vector<std::vector<double>>& us, int blocks,
                                  PrepartitionMethod method);

}  // namespace heddle
