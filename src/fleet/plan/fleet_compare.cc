#include "heddle/fleet/fleet_compare.h"

#include <optional>
#include <utility>

#include "heddle/fleet/fleet_check.h"

namespace heddle {

Result<std::vector<ComparedFleetPlan>> compare_fleet_planners(
    const Fleet& fleet, const std::vector<std::string>& planners,
    const std::function<Result<FleetPlanOptions>()>& options) {
  std::vector<ComparedFleetPlan> plans;
  std::optional<std::pair<double, Proof>> bound;
  for (const auto& name : planners) {
    HEDDLE_ASSIGN_OR_RETURN(const auto own, options());
    auto plan = plan_fleet(fleet, name, own);
    if (!plan.ok() && plan.error().code() != Code::kInfeasible && plan.error().code() != Code::kUnsupported &&
        plan.error().code() != Code::kCancelled)
      return std::move(plan).error();
    if (plan.ok() && (!bound || (more_is_better(plan->objective) ? plan->bound < bound->first
                                                                 : plan->bound > bound->first)))
      bound.emplace(plan->bound, plan->proof);
    plans.push_back({name, std::move(plan)});
  }
  for (auto& [name, plan] : plans) {
    if (!plan.ok()) continue;
    HEDDLE_RETURN_IF_ERROR(hold_against(fleet, *plan, bound->first, bound->second));
  }
  return plans;
}

}  // namespace heddle
