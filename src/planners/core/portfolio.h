// Several planners on one problem.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "plan_store.h"

namespace heddle {

// Runs those that support the objective, offers their plans and gives them back in that order. Stops between
// planners when the deadline has passed, but never before there is a feasible plan; a planner that finds none
// is passed over.
std::vector<Plan> run_portfolio(const Problem& problem, const PlannerOptions& options,
                                std::span<const std::string_view> names, PlanStore& candidates);

// The constructive planners for the objective, cheapest first.
std::span<const std::string_view> constructive_planners(Objective objective);

// Where an improving planner begins: options.start, or else what the constructive planners give. All are
// offered.
std::vector<Plan> starting_plans(const Problem& problem, const PlannerOptions& options,
                                 PlanStore& candidates);

// A planner that improves: what `improve` makes of the starting plans, all of which the candidates have; a
// cancellation before there is any is answered here.
Result<PlannerOutput> plan_from_starts(
    const Problem& problem, const PlannerOptions& options,
    const std::function<Result<PlannerOutput>(std::vector<Plan> starts, PlanStore& candidates)>& improve);

}  // namespace heddle
