// The gap between a value and its proven bound: the one formula used everywhere.
#pragma once

#include <algorithm>
#include <limits>

namespace heddle {

// (value - bound) / bound for costs, both in one unit. Rates, whose bound is above: relative_gap(bound, value).
// Clamped at 0, because two orders of summation may differ in the last bit. Without a bound (0): infinite, or 0
// for a value of 0.
inline double relative_gap(double value, double bound) {
  if (bound > 0) return std::max(0.0, (value - bound) / bound);
  return value > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace heddle
