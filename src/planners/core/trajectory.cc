#include "heddle/planners/trajectory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle {

std::optional<Incumbent> at_time(std::span<const Incumbent> trajectory, double seconds) {
  std::optional<Incumbent> last;
  for (const Incumbent& entry : trajectory) {
    if (entry.seconds <= seconds) last = entry;
  }
  return last;
}

std::vector<Incumbent> milestones(std::span<const Incumbent> trajectory, double planning_s) {
  std::vector<Incumbent> all;
  for (const double seconds : {1.0, 10.0, 60.0}) {
    if (seconds >= planning_s) break;
    const Incumbent nothing{0, std::numeric_limits<double>::infinity(), 0};
    all.push_back(at_time(trajectory, seconds).value_or(nothing));
    all.back().seconds = seconds;
  }
  return all;
}

double primal_integral(std::span<const Incumbent> trajectory, double best_us, double horizon_s) {
  double sum = 0, from = 0, gap = 1;
  for (const Incumbent& entry : trajectory) {
    const double until = std::clamp(entry.seconds, from, horizon_s);
    sum += gap * (until - from);
    from = until;
    const bool plan = std::isfinite(entry.value_us) && entry.value_us > 0;
    gap = plan ? std::clamp((entry.value_us - best_us) / entry.value_us, 0.0, 1.0) : 1;
  }
  return sum + gap * std::max(0.0, horizon_s - from);
}

}  // namespace heddle
