// heddle doctor --simulate: the service under seeded faults on a simulated clock.
#pragma once

#include <cstdint>
#include <optional>

#include "heddle/command/command.h"

namespace heddle::cli {

struct SimulateFlags {
  std::optional<int64_t> seeds;
  std::optional<int64_t> first_seed;  // else 1
};

// Returns the exit status: kExitNo when a seed fails. Errors: no number of seeds.
Result<int> run_simulations(const SimulateFlags& flags, const Invocation& invocation);

}  // namespace heddle::cli
