// The independent checker of fleet plans. It recomputes rates, deadlines, memory and whole devices from the
// times alone and shares no code with the planners or the evaluator.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

// The plan's errors, one sentence each, naming model and pipeline; empty: the plan is valid. Claimed rates,
// value and bound must agree to 1e-9 (relative). The fleet must pass check_fleet().
std::vector<std::string> fleet_plan_problems(const Fleet& fleet, const FleetPlan& plan);
// The first few problems as one kVerificationFailed error.
Status check_fleet_plan(const Fleet& fleet, const FleetPlan& plan);
// For a planner's own plan, with the best bound that is known: a plan that does not hold is kInternal. If it is beyond
// the bound, the error names the bound and the files in the working directory that now have fleet and plan.
Status check_planned(const Fleet& fleet, const FleetPlan& plan);
// Gives the plan a bound that another plan of this fleet and load has, and checks it. A bound that differs from the
// value by the solvers' tolerance becomes the value.
Status hold_against(const Fleet& fleet, FleetPlan& plan, double bound, const Proof& proof);

}  // namespace heddle
