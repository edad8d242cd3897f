// Which of the devices that exclude each other to use.
#pragma once

#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// The maximal sets of usable devices among which no two overlap (one set, all of them, where nothing
// overlaps), at most `limit`, those with the fewest devices first. Each ascending. Exponential in the
// overlapping devices, cut off by limit.
std::vector<std::vector<DeviceId>> device_configurations(const Problem& problem, size_t limit = 16);

}  // namespace heddle
