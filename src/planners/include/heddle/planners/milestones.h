// A trajectory in three figures.
#pragma once

#include <vector>

#include "heddle/planners/trajectory.h"

namespace heddle {

// What was there after 1, 10 and 60 s, which `seconds` then say, as far as planning took longer than that.
std::vector<Incumbent> milestones(std::span<const Incumbent> trajectory, double planning_s);

}  // namespace heddle
