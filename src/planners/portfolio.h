// Several planners on one problem.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "candidates.h"

namespace heddle {

// Runs those that support the objective, offers their plans and gives them back in that order. Stops between
// planners when the deadline has passed, but never before there is a feasible plan; a planner that finds none
// is passed over.
std::vector<Plan> run_portfolio(const Problem& problem, const PlannerOptions& options,
                                std::span<const std::string_view> names, Candidates& candidates);

// The constructive planners for the objective, cheapest first.
std::span<const std::string_view> constructive_planners(Objective objective);

// Where an improving planner begins: options.start, or else what the constructive planners give. All are
// offered.
std::vector<Plan> starting_plans(const Problem& problem, const PlannerOptions& options,
                                 Candidates& candidates);

}  // namespace heddle
