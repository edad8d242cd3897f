// The flags of the cold start: host access, resident and dropped parameters, fixed sharing.
#pragma once

#include "heddle/base/status.h"
#include "workbench.h"

namespace heddle::cli {

// Puts what the flags allow into the problem, whose costs are known by now. Errors name the flag.
Status allow_cold_start(Problem& problem, const ProblemFlags& flags);

}  // namespace heddle::cli
