// From a plan to a result that can be shown: evaluated, checked, bounded.
#pragma once

#include <string>

#include "heddle/base/status.h"
#include "heddle/planners/planner.h"

namespace heddle {

// Times the plan with the one evaluator, takes the better of the planner's bound and the combinatorial one,
// and has the one checker look at all of it. A plan that fails the check, or a bound above it, is an internal
// error that names both.
Result<PlanResult> judge_plan(const std::string& planner, const Problem& problem, PlannerOutput output,
                              double planning_s);

}  // namespace heddle
