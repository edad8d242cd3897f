// Where a topological order may be cut for a cold start, and what that costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"
#include "heddle/runtime/cold_plan.h"

namespace heddle {

// What crosses a border.
struct ColdCrossing {
  int64_t tensors = 0, bytes = 0;
};

// After each place of the order. O(V + E).
std::vector<ColdCrossing> cold_crossings(const Graph& graph, std::span<const OpId> order);

// Per place of the order: an op's share of compiling where nothing was measured. It counts as much as 1 MB of
// parameters, a shared parameter at its first reader (docs/measurements/cold.md has the measurement behind
// it).
std::vector<double> cold_weights(const Graph& graph, std::span<const OpId> order);

// After which places each segment but the last ends, ascending and distinct, for the earliest first output.
// `segments`: at most; 0: cold_plan()'s own limit. `threads`: of the device.
std::vector<size_t> search_cold_borders(const Graph& graph, std::span<const OpId> order,
                                        const ColdCosts& costs, const ColdMachine& machine, int segments,
                                        int threads);

}  // namespace heddle
