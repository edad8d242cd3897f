// Groups a model's ops into a few blocks of about equal time; fleet plans may cut between blocks (PPipe,
// ATC'25, section 5.2).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

enum class PrepartitionMethod {
  kGreedy,   // the paper: ops in order, each block as close to 1/N of the time as possible, on one class
  kBalanced  // the published planner: minimises the sum of cut bytes, with every block near 1/N of the time
             // on all classes
};
std::optional<PrepartitionMethod> prepartition_method_named(std::string_view name);  // "greedy", "balanced"

struct Prepartition {
  std::vector<std::vector<OpId>> blocks;  // ops of each block, ascending; every op is in exactly one
  std::vector<double>
      cut_bytes;  // blocks + 1 entries: bytes that cross each cut; [0] the model's inputs, [N] its outputs
  std::vector<double> parameter_bytes;  // of each block; a parameter shared by two blocks counts in both
  double window = 0;                    // kBalanced: every block's time is within 1 +- window of 1/N
};

// `us` is [class][op] on a whole device, finite and not negative. Cuts are positions in the graph's
// topological order; a tensor with several later readers crosses each cut up to the last reader once. The
// result has fewer than `blocks` blocks if the graph has fewer ops, or with kGreedy if the ops' times are
// very unequal. kBalanced starts with a window of 10 % and widens it until a partition exists. It solves the
// published MILP exactly in O(blocks * ops^2), as all cuts lie on one line.
Result<Prepartition> prepartition(const Graph& graph, const std::vector<std::vector<double>>& us, int blocks,
                                  PrepartitionMethod method);

}  // namespace heddle
