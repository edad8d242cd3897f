// Whether plans may move tensors faster than over the cluster's routes.
#pragma once

#include "flat_problem.h"

namespace heddle {

// True if no path of links between two of the devices is faster than the cluster's route, for any size: that has both
// the least latency and the most bandwidth of all. Then a model of the cluster's routes alone bounds every plan.
bool has_fastest_routes(const FlatProblem& flat);

}  // namespace heddle
