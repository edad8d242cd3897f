// Local search from a given start, for planners that have one.
#pragma once

#include "heddle/plan/builder.h"
#include "heddle/planners/planner.h"

namespace heddle {

Result<PlannerOutput> improve(const Problem& problem, const Assignment& start, const Bound& bound,
                              const PlannerOptions& options);

}  // namespace heddle
