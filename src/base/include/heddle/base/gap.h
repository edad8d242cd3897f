// The gap between a value and its proven bound: the one formula, and the one form of words, used everywhere.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

namespace heddle {

// (value - bound) / bound for costs, both in one unit. Rates, whose bound is above: relative_gap(bound, value).
// Clamped at 0, because two orders of summation may differ in the last bit. Without a bound (0): infinite, or 0
// for a value of 0.
inline double relative_gap(double value, double bound) {
  if (bound > 0) return std::max(0.0, (value - bound) / bound);
  return value > 0 ? std::numeric_limits<double>::infinity() : 0;
}

// Solvers stop within a tolerance, and what builds on their answers inherits it. A bound beyond a plan's value by at
// most this much of the value contradicts nothing. If it is further beyond, plan or bound is wrong.
inline constexpr double kSolverTolerance = 1e-5;

// A bound is about given times, not about the machine, so each place that shows one says which times these are.
inline constexpr const char* kProfileTimes = "the profile's times";
// "bound 12.3 ms for the profile's times".
std::string bound_text(const std::string& bound, const std::string& times = kProfileTimes);
// The line for a table with bounds or gaps: "Bound and gap are for the profile's times.", and its end.
std::string bound_note(const std::string& times = kProfileTimes);

}  // namespace heddle
