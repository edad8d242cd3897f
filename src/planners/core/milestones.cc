#include "heddle/planners/milestones.h"

#include <limits>

namespace heddle {

std::vector<Incumbent> milestones(std::span<const Incumbent> trajectory, double planning_s) {
  std::vector<Incumbent> all;
  for (const double seconds : {1.0, 10.0, 60.0}) {
    auto then = at_time(trajectory, seconds);
    if (seconds >= planning_s) break;
    if (!then) then = Incumbent{0, std::numeric_limits<double>::infinity(), 0};
    then->seconds = seconds;
    all.push_back(*then);
  }
  return all;
}

}  // namespace heddle
