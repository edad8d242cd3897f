// The whole model on one device: op by op, and as one segment where that segment's time is known.
#pragma once

#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/problem.h"

namespace heddle {

// Empty when the device cannot run the model. The fastest one first; segments may be known to be slower than
// their parts.
std::vector<Assignment> whole_model_on(const Problem& problem, DeviceId device);
// The least time of those; kImpossible when there is none.
double whole_model_us(const Problem& problem, DeviceId device);

}  // namespace heddle
