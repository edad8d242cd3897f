// How far a plan can be from optimal: one formula for all that show it.
#pragma once

#include <algorithm>
#include <limits>

namespace heddle {

// (value - bound) / bound, in any one unit, never negative: two ways of adding up may differ in the last bit.
// Where nothing was proven: infinite, and 0 for a value of 0.
inline double relative_gap(double value, double bound) {
  if (bound > 0) return std::max(0.0, (value - bound) / bound);
  return value > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace heddle
