// Large-neighbourhood search for throughput: some ops' devices are decided anew by CP-SAT for the least
// largest load, all others stay.
#pragma once

#include "lns_search.h"

namespace heddle {

// The order of the plan does not matter and is kept. The flat problem must outlive it.
std::unique_ptr<LnsSearch> make_load_lns(const FlatProblem& flat, FlatPlan start, uint64_t seed);

}  // namespace heddle
