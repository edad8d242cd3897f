// A search by HiGHS for an amount of work.
#pragma once

#include "heddle/solve/milp.h"

namespace heddle {

// As solve(), but it stops after so much work, too: HiGHS's iterations, each weighted by the model's size (a
// unit is about a second of one core, whatever the machine's load), so that with one thread the answer is the
// same on every run. Gurobi counts work in its own unit of about a second. Not above 0: kInvalidInput.
Result<Solution> solve_for(const Milp& model, double work, const SolveOptions& options);

}  // namespace heddle
