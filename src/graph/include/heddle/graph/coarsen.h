// Coarsening: each op of the smaller graph stands for a convex set of ops of the input graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// Op k of the result stands for the ops of group k; group[op] is in 0..k-1. Fails when a group number is
// missing or the quotient has a cycle. A tensor that stays within its group disappears unless it is a model
// output. Parameters are united, flops added. bytes_accessed is recomputed from boundary tensors and
// parameters. given_times are added per device class that every member has a time for; utilization is the
// mean weighted by time or flops. Members are ids of `fine`, or of the finest graph if `fine` is itself
// coarsened. O(V + E).
Result<std::shared_ptr<const Graph>> coarsen(const Graph& fine, std::span<const int> group);

// Light ops join their only predecessor, else their only successor, in passes until nothing changes. Light
// are elementwise ops (at most one flop per byte accessed) and ops with at most `flops_share` of all flops
// and `bytes_share` of all bytes: shape arithmetic, activations, reshapes. The quotient stays acyclic. This
// is the default granularity for planning a real model. O((V + E) * passes).
std::vector<int> group_light_ops(const Graph& graph, double flops_share = 1e-3, double bytes_share = 1e-3);
// At most `max_groups` groups. Repeatedly merges the lightest group into a neighbour if the quotient stays
// acyclic, preferring the neighbour that exchanges the most bytes with it.
std::vector<int> group_to_size(const Graph& graph, size_t max_groups);

}  // namespace heddle
