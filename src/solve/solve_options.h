// Checks of options common to all solvers.
#pragma once

#include "heddle/base/status.h"
#include "heddle/solve/solution.h"

namespace heddle {

// kInvalidInput for a number of threads outside 1..1024, work that is not above 0, negative or undefined
// gaps.
Status check_options(const SolveOptions& options);

}  // namespace heddle
