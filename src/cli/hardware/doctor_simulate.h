// heddle doctor --simulate: the service under seeded faults on a simulated clock.
#pragma once

#include <cstdint>

#include "command.h"

namespace heddle::cli {

struct SimulateFlags {
  int64_t seeds = 0;  // 0: not asked for
  int64_t first_seed = 1;
};

// Returns the exit status: kExitNo when a seed fails.
Result<int> run_simulations(const SimulateFlags& flags, const Invocation& invocation);

}  // namespace heddle::cli
