// Searches for throughput over several lanes at once.
#pragma once

#include <functional>

#include "heddle/planners/planner.h"

namespace heddle {

// Lanes of equal share (data parallelism), each with devices of its own choice for every op (model
// parallelism): the copies of side_by_side() as one lane, improved by local search and large neighbourhoods
// from `start` (whose lanes are dealt out in turn) and a greedy plan. What is better is offered as a plan of
// the problem. Objective: throughput. Does nothing on graphs that would become too large.
void search_lanes(const Problem& problem, const PlannerOptions& options, int lanes, const Plan* start,
                  const std::function<bool(Plan plan)>& offer);

}  // namespace heddle
