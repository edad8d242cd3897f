#include "heddle/session/compare.h"

#include "heddle/base/gap.h"
#include "heddle/planners/shared_bound.h"

namespace heddle {

Result<std::vector<ComparedPlan>> compare_planners(const Problem& problem,
                                                   std::vector<const PlannerEntry*> planners,
                                                   const SearchSettings& search, const Control& control) {
  if (planners.empty()) {
    for (const auto& entry : planner_registry())
      if (entry.supports(problem)) planners.push_back(&entry);
  }
  std::vector<ComparedPlan> compared;
  SharedBound bound(problem);
  for (const auto* entry : planners) {
    compared.push_back({entry->info.name, run_planner(*entry, problem, planner_options(search, control))});
    const auto& result = compared.back().result;
    if (result.ok()) HEDDLE_RETURN_IF_ERROR(bound.add(*result));
  }
  for (auto& [name, result] : compared) {
    if (!result.ok()) continue;
    // All plans are for one problem, so the best bound holds for all.
    result->bound = bound.best();
    result->gap = relative_gap(result->value_us, result->bound.us);
  }
  return compared;
}

}  // namespace heddle
