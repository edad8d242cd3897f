// Submodels between dominators (SortingHat, ICS'25, section 3.1): pieces of a model that can be planned one
// after another, since every path from the model's inputs to its outputs passes through each piece's last op.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The ops on every path from a source to a sink, in topological order: the dominators of the output node (all
// sinks taken together). O(m * depth of the dominator tree).
std::vector<OpId> partition_ops(const Graph& graph);

struct Submodels {
  std::vector<int> of_op;  // 0 .. count - 1, never falling along an edge
  int count = 0;
  // Per submodel its last partition op, the only one that a later submodel reads from, and that is the next
  // submodel only. Invalid for a last submodel in which the model ends in several sinks.
  std::vector<OpId> output;
};

// Per op, is it of the prologue: ops that together are next to nothing (a hundredth of all flops, of all
// bytes accessed and of all parameters) and read from model inputs or from each other only, such as position
// angles that every layer reads. All 0 where the graph has neither flops nor sizes. O(n + m).
std::vector<uint8_t> light_prologue(const Graph& graph);

// `dominators` (at least 1; SortingHat's nDom) partition ops per submodel; the last submodel may have fewer,
// or none when only what follows the last partition op is left. O(m * depth of the dominator tree).
Submodels dominator_submodels(const Graph& graph, int dominators);
// The same on what is left without the prologue, which belongs to the first submodel; all may read from it.
Submodels dominator_submodels(const Graph& graph, const std::vector<uint8_t>& prologue, int dominators);

// Other cuts in their place, a choice of the same partition ops. At articulation points: also without regard
// to directions everything passes there (inputs that several submodels read join them). At ends of fused
// groups (heddle/graph/gcof.h, the default rules): no group is torn apart.
Submodels articulation_submodels(const Graph& graph, int points);
Submodels fused_submodels(const Graph& graph, int groups);

// The largest nDom whose submodels have at most `max_ops` ops; 1 when there is none (a submodel between
// neighbouring dominators may be larger). Looks at every nDom that makes a difference: O(P log P) for P
// partition ops, after they are found.
int dominators_for_size(const Graph& graph, size_t max_ops);

// One submodel as a graph of its own. All but the first have a placeholder op in front (type "Placeholder",
// no work, no parameters), which makes the tensors that the submodel reads from the one before.
struct SubmodelGraph {
  std::shared_ptr<const Graph> graph;
  std::vector<OpId> ops;  // per op of `graph`, the model's op; for the placeholder, the op that it stands for
  OpId placeholder;       // in `graph`; invalid in the first submodel
};
// Fails when there is no submodel `index`. Tensors that later submodels or the model's user read are outputs.
Result<SubmodelGraph> submodel_graph(const Graph& graph, const Submodels& submodels, int index);

}  // namespace heddle
