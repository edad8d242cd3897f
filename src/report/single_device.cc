#include "heddle/report/single_device.h"

#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"

namespace heddle {

std::optional<SingleDevice> best_single_device(const Problem& problem) {
  std::optional<SingleDevice> best;
  std::vector<const char*> planners = {"single"};
  // In a cold start one device, too, is faster if it begins before all parameters are there.
  if (problem.objective == Objective::kColdLatency) planners.push_back("cold-single");
  for (const char* const name : planners) {
    const auto plan = find_planner(name)->plan(problem, {.deadline = Deadline::after_seconds(1)});
    if (!plan.ok()) continue;
    const auto us = evaluate_objective(problem, plan->plan);
    if (!us.ok() || (best && best->value_us <= *us)) continue;
    best = SingleDevice{problem.cluster->device(plan->plan.segments.front().device).name, *us};
  }
  return best;
}

}  // namespace heddle
