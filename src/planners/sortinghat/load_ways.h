// Ways for parameters into a device: its own route from host memory, or another device's and on from there
// (parallel transmission: DeepPlan, EuroSys 2023; SortingHat, ICS'25, section 2.1).
#pragma once

#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// From host memory to `helper` and on to `device`; empty when that visits a node twice or there is no way.
std::vector<Hop> hops_over(const Cluster& cluster, DeviceId helper, DeviceId device);

}  // namespace heddle
