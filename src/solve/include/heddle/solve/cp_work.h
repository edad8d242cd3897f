// A search by CP-SAT for an amount of work.
#pragma once

#include "heddle/solve/cp.h"

namespace heddle {

// As solve(), but it stops after so much work, too, counted in CP-SAT's own units (some seconds each,
// whatever the machine's load): what a short search needs to be repeatable. Not above 0: kInvalidInput.
Result<Solution> solve_for(const CpModel& model, double work, const SolveOptions& options);

}  // namespace heddle
