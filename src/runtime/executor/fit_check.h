// Whether a plan fits into its devices' memory, before anything is opened or loaded.
#pragma once

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// Infeasible where the evaluated peak of a device whose backend computes is over its memory; the error names
// the device and both sizes. O(evaluate()).
Status check_fit(const Problem& problem, const Plan& plan);

}  // namespace heddle
