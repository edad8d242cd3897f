// Cuts a model into segments for a cold start on one device.
#pragma once

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct ColdPlanOptions {
  int segments = 0;  // at most; 0: as many as pay, 1 to 4
  DeviceId device;   // invalid: the usable one with the most cores (ties: the first)
};

// Consecutive slices of the topological order, about equally long to compile: an op counts as much as 1 MB of
// parameters (docs/measurements/cold.md has the measurement behind it). Near each border the cut with the
// fewest tensors across, then the fewest bytes, is taken. Each further segment costs some 30 ms of compiling
// beside its ops, so that with 0 segments asked for each gets at least 100 ops or MB. Fails when the device
// cannot run an op. O(V + E).
Result<Plan> cold_plan(const Problem& problem, const ColdPlanOptions& options = {});

}  // namespace heddle
