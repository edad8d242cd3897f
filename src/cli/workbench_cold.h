// The flags of the cold start: host access, resident and dropped parameters, fixed sharing.
#pragma once

#include "heddle/base/status.h"
#include "heddle/cost/cost.h"
#include "workbench.h"

namespace heddle::cli {

// Puts the measured times of units that read their parameters in place into a table of the problem's costs,
// where the store of `bench` knows them. O(units x devices x log store).
void put_host_access(const Workbench& bench, const Problem& problem, CostTable& costs);
// Measures them first where --host-access is given, the accelerator is here and the store does not know.
Status learn_host_access(Workbench& bench, const ProblemFlags& flags, const Invocation& invocation);

// Puts what the flags allow into the problem, whose costs are known by now. Errors name the flag.
Status allow_cold_start(Problem& problem, const ProblemFlags& flags);

}  // namespace heddle::cli
