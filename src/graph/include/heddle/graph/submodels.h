// Submodels between dominators (SortingHat, ICS'25, section 3.1). These pieces of a model can be planned one
// after another, because every path from inputs to outputs passes through each piece's last op.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The ops on every path from a source to a sink, in topological order: the dominators of a virtual output
// node that joins all sinks. Ops of the prologue, if given (by op), count as model inputs. O(n + m).
std::vector<OpId> partition_ops(const Graph& graph, const std::vector<uint8_t>& prologue = {});

// An op at which the graph can be cut in two: a partition op that is not the last one.
struct CutPoint {
  OpId op;
  int64_t bytes = 0;        // of what crosses after it
  double flops_before = 0;  // share of all FLOPs up to it and its own
};
// In topological order. O(n + m).
std::vector<CutPoint> cut_points(const Graph& graph);

struct Submodels {
  std::vector<int> of_op;  // 0 .. count - 1, never decreasing along an edge
  int count = 0;
  // Each submodel's last partition op. It is the only op that a later submodel reads, and only the next
  // submodel reads it. Invalid for a last submodel that ends in several sinks.
  std::vector<OpId> output;
};

// Marks the prologue: ops that read only model inputs or each other, for example position angles that every
// layer reads. Together they hold at most one percent of all flops, of all bytes accessed and of all
// parameters. All 0 when the graph has no flops or no bytes. O(n + m).
std::vector<uint8_t> light_prologue(const Graph& graph);

// Each submodel holds `dominators` (at least 1; SortingHat's nDom) partition ops. The last submodel may have
// fewer, or none if only ops after the last partition op are left. O(n log n + m).
Submodels dominator_submodels(const Graph& graph, int dominators);
// The same on the graph without the prologue. Prologue ops belong to submodel 0; all submodels may read them.
Submodels dominator_submodels(const Graph& graph, const std::vector<uint8_t>& prologue, int dominators);

// Alternative cuts, at a subset of the same partition ops. articulation_submodels() keeps those that are
// articulation points of the undirected op graph too; fused_submodels() those that end a fused group
// (heddle/graph/gcof.h, default rules), so that no group is split. Both keep a cut at the sink.
Submodels articulation_submodels(const Graph& graph, int points);
Submodels fused_submodels(const Graph& graph, int groups);

// The largest nDom whose submodels have at most `max_ops` ops; 1 when there is none (one submodel between
// neighbouring dominators may already be larger). Tries every nDom: O(P log P), P partition ops.
int dominators_for_size(const Graph& graph, size_t max_ops);

}  // namespace heddle
