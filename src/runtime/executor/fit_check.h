// Checks that a plan fits into its devices' memory, before anything is opened or loaded.
#pragma once

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// Infeasible if the evaluated peak exceeds the memory of a device whose backend computes; the error names the
// device and both sizes. O(evaluate()).
Status check_fit(const Problem& problem, const Plan& plan);

}  // namespace heddle
