// Which devices to use together.
#pragma once

#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// Maximal sets of usable devices in which no two share cores, any two can exchange tensors and every op can
// run; devices that cannot get parameters (cold objective) are left out. The most promising ones when there
// are many: by total speed and by the fastest device. Never empty: when no such set exists, all usable
// devices.
std::vector<std::vector<DeviceId>> configurations(const Problem& problem);

}  // namespace heddle
