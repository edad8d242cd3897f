// HiGHS searches limited by an amount of work.
#pragma once

#include "heddle/solve/milp.h"

namespace heddle {

// Like solve(), but also stops after `work`: HiGHS's iterations, weighted by the model's size. A unit is
// about a second of one core, whatever the machine's load; with one thread the answer is the same on every
// run. Gurobi counts in its own unit of about a second. kInvalidInput unless `work` is above 0.
Result<Solution> solve_for(const Milp& model, double work, const SolveOptions& options);

}  // namespace heddle
