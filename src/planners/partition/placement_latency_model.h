// The exact scheduling model of latency, for CP-SAT.
#pragma once

#include <vector>

#include "heddle/solve/solution.h"
#include "placement_latency.h"
#include "placement_load_model.h"

namespace heddle {

// Solves from `hint` (a piece of each unit, of that latency) until options.deadline; `bound` is a known lower
// bound. Calls back as solve_load_model() does, and rounds down likewise, so the proven bound is one. It is
// one of all splits only where PlacementOrder::kPieces restricts nothing; else of those that respect it.
Status solve_latency_model(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
                           double bound, SolveOptions options, const LoadModelCallbacks& callbacks);

}  // namespace heddle
