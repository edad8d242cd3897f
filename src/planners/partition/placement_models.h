// The exact models of non-contiguous max-load and of latency, for CP-SAT.
#pragma once

#include <functional>
#include <vector>

#include "heddle/solve/solution.h"
#include "placement_latency.h"

namespace heddle {

struct SplitCallbacks {
  std::function<void(const std::vector<int32_t>&)> split;  // a new incumbent of the solver
  std::function<void(double)> bound;                       // proven: no split has a smaller value
};

// Solves from `hint` until options.deadline; calls back from the solver's threads, one call at a time. The
// proven bound stays one although the solver sees integers: all times and sizes are rounded down. Splits are
// to be checked by the caller: rounding may let memory be exceeded by less than a byte a unit. A model that would have
// millions of literals is left out: no call, and no error.
Status solve_load_model(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value,
                        const SolveOptions& options, const SplitCallbacks& callbacks);

// The same for latency, from a piece of each unit; `bound` is a known lower bound. The proven bound is one of all
// splits only where PlacementOrder::kPieces restricts nothing; else of those that respect it.
Status solve_latency_model(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
                           double bound, const SolveOptions& options, const SplitCallbacks& callbacks);

}  // namespace heddle
