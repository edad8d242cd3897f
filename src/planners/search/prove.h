// Search, proof and search again: what auto and cp-sat do once they have plans to start from.
#pragma once

#include <vector>

#include "core/plan_store.h"
#include "heddle/planners/planner.h"

namespace heddle {

// Improves the best of `starts` by local search, proves a bound by a linear program and, for latencies on
// models of a size that it can handle, by CP-SAT, whose schedule is improved once more. Offers all plans;
// the result carries the best bound. Bounds need a solver: where it cannot be loaded (sanitizer builds have
// no CP-SAT), the time goes to the search.
Result<PlannerOutput> search_and_prove(const Problem& problem, const PlannerOptions& options,
                                       std::vector<Plan> starts, PlanStore& candidates);

}  // namespace heddle
