// Whether a plan fits into its devices' memory.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/executor.h"

namespace heddle {

// Before anything is opened or loaded: infeasible where the evaluated peak of a device whose backend computes
// is over its memory; the error names the device and both sizes. O(evaluate()).
Status check_fit(const Problem& problem, const Plan& plan);
// The same of what was allocated, for the device's pool.
Status check_use(const Cluster& cluster, DeviceId device, std::span<const PoolUse> pools);

// Of the segment's ops, each parameter once.
int64_t parameter_bytes(const Graph& graph, const Segment& segment);

}  // namespace heddle
