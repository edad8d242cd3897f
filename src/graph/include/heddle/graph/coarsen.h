// Rewrites that make a smaller graph: each op of the result stands for a convex set of ops of the input.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// group[op] in 0..k-1. Fails when a group number is missing or the quotient has a cycle. Tensors that no
// other group reads (and that are no model output) vanish; parameters are united; flops add; bytes_accessed
// is recomputed as boundary tensors plus parameters; given_times add over device classes that all members
// name; utilization is the time- or flops-weighted mean. Members are ids of `fine` (if fine is itself
// coarsened, its members: ids of the finest). Op k of the result is group k. O(V + E).
Result<std::shared_ptr<const Graph>> coarsen(const Graph& fine, std::span<const int> group);

// Chains: an op joins its only predecessor when it is that one's only successor. O(V + E).
std::vector<int> group_chains(const Graph& graph);
// Ops that cost next to nothing alone (at most `flops_share` of all flops and `bytes_share` of all bytes, for
// example shape arithmetic, activations, reshapes) join the neighbour that reads or feeds them, where the
// quotient stays acyclic; then chains. This is the default granularity for planning a real model. O((V + E) *
// passes).
std::vector<int> group_light_ops(const Graph& graph, double flops_share = 1e-3, double bytes_share = 1e-3);
// At most `max_groups` groups: repeatedly merges the lightest group into a neighbour where the quotient stays
// acyclic, preferring the pair with the largest tensor between them.
std::vector<int> group_to_size(const Graph& graph, size_t max_groups);

}  // namespace heddle
