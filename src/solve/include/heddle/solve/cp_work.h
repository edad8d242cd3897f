// CP-SAT searches limited by an amount of work.
#pragma once

#include "heddle/solve/cp.h"

namespace heddle {

// Like solve(), but also stops after `work`, in CP-SAT's own units (some seconds each, whatever the machine's
// load), so that a short search is repeatable. kInvalidInput unless `work` is above 0.
Result<Solution> solve_for(const CpModel& model, double work, const SolveOptions& options);

}  // namespace heddle
