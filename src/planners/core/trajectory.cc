#include "heddle/planners/trajectory.h"

#include <algorithm>
#include <cmath>

namespace heddle {

std::optional<Incumbent> at_time(std::span<const Incumbent> trajectory, double seconds) {
  std::optional<Incumbent> last;
  for (const Incumbent& entry : trajectory) {
    if (entry.seconds <= seconds) last = entry;
  }
  return last;
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
