// Ways for parameters into a device: its own route from host memory, or another device's and on from there
// (parallel transmission: DeepPlan, EuroSys 2023; SortingHat, ICS'25, section 2.1).
#pragma once

#include <vector>

#include "core/flat_problem.h"

namespace heddle {

// From host memory to `helper` and on to `device`; empty when that visits a node twice or there is no way.
std::vector<Hop> hops_over(const Cluster& cluster, DeviceId helper, DeviceId device);
// What they take: the sum of latencies, the least bandwidth of their links and buses.
FlatProblem::Way way_over(const Cluster& cluster, std::span<const Hop> hops);

}  // namespace heddle
