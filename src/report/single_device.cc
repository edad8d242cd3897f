#include "heddle/report/single_device.h"

#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"

namespace heddle {

std::optional<SingleDevice> best_single_device(const Problem& problem) {
  const auto plan = find_planner("single")->plan(problem, {.deadline = Deadline::after_seconds(1)});
  if (!plan.ok()) return std::nullopt;
  const auto us = evaluate_objective(problem, plan->plan);
  if (!us.ok()) return std::nullopt;
  return SingleDevice{problem.cluster->device(plan->plan.segments.front().device).name, *us};
}

}  // namespace heddle
