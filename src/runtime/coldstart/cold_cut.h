// Positions at which a topological order can be cut for a cold start, and their costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/graph/graph.h"
#include "heddle/runtime/cold_plan.h"

namespace heddle {

// Tensors that cross a border, and their bytes.
struct ColdCrossing {
  int64_t tensors = 0, bytes = 0;
};

// [position] what crosses a border behind it. O(V + E).
std::vector<ColdCrossing> cold_crossings(const Graph& graph, std::span<const OpId> order);

// [position] an op's share of the compile time if nothing was measured: 1 per op plus its parameters in MB. A
// shared parameter counts at its first reader. docs/measurements/cold.md has the measurement behind this.
std::vector<double> cold_weights(const Graph& graph, std::span<const OpId> order);

// The positions behind which each segment except the last ends, ascending and distinct, for the earliest
// first output. `segments`: maximum; 0: cold_plan()'s own limit. `threads`: of the device.
std::vector<size_t> search_cold_borders(const Graph& graph, std::span<const OpId> order,
                                        const ColdCosts& costs, const ColdMachine& machine, int segments,
                                        int threads);

}  // namespace heddle
