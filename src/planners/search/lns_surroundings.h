// What the rest of a plan leaves to a window of it.
#pragma once

#include <vector>

#include "lns_window.h"

namespace heddle {

struct Surroundings {
  std::vector<double> free_us;    // per device: when the last op before ends
  std::vector<double> tail_us;    // per device: the longest chain that begins with the first op after
  std::vector<double> rest_us;    // per op after: the longest chain from its start
  double least_us = 0;            // the makespan that the rest alone needs
  std::vector<double> loaded_us;  // per resource: loads of ops before (cold)
  std::vector<int64_t> room;      // per pool: bytes for the window's parameters
  std::vector<uint8_t> brought;   // pool x param: by an op outside
};

// Of the places [first, last) of the plan's order. O(V + E).
Surroundings survey(const FlatProblem& flat, const TimedPlan& timed, size_t first, size_t last);

}  // namespace heddle
