// What run_planner() does with a plan once it is there, also for plans that come from elsewhere.
#pragma once

#include <string>

#include "heddle/planners/planner.h"

namespace heddle {

// Adds timeline, value, bound and gap to a planner's output and checks them; a plan that fails the check, or
// a bound above its value, is an internal error that names the planner. The problem must be validated.
Result<PlanResult> verified_result(const std::string& planner, const Problem& problem, PlannerOutput output,
                                   double planning_s);

}  // namespace heddle
