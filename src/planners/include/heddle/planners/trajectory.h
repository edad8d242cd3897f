// How plan and bound came closer over time, in figures.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace heddle {

// From `seconds` on, until the next entry. Values only fall, bounds only rise.
struct Incumbent {
  double seconds = 0;   // since the planner began
  double value_us = 0;  // infinite while there was no plan
  double bound_us = 0;  // 0 while nothing was proven
};

// The entry in force at that moment; nullopt before the first entry.
std::optional<Incumbent> at_time(std::span<const Incumbent> trajectory, double seconds);

// The state after 1, 10 and 60 s (as `seconds` of the entries), as far as planning took longer than that.
std::vector<Incumbent> milestones(std::span<const Incumbent> trajectory, double planning_s);

// Integral from 0 to `horizon_s` of the primal gap to `best_us`, in seconds: 1 while there is no plan, then
// (value - best) / value. Less is better. T. Berthold, "Measuring the impact of primal heuristics",
// Operations Research Letters 41(6), 2013.
double primal_integral(std::span<const Incumbent> trajectory, double best_us, double horizon_s);

}  // namespace heddle
