// Plans of fleets: for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_compare.h"
#include "heddle/fleet/fleet_explain.h"
#include "heddle/fleet/fleet_replan.h"
#include "heddle/report/shown.h"

namespace heddle {

// The objective's value with its unit.
std::string value_text(FleetObjective objective, double value);
// "times: estimated on L4 and P4, within a factor of 2\n", or "" if the fleet does not say.
std::string times_line(const Fleet& fleet);
// bound_note() with the sources: "Bound and gap are for the times of the fleet file (estimated on L4 ..).\n"
std::string fleet_bound_note(const Fleet& fleet);

// planner, objective, value, bound, bound_reason, bound_claimed_by, gap, planning_s, verified, devices, times.
Json plan_row(const Fleet& fleet, const FleetPlan& plan);
// The pipelines and pools of a plan, one pool a line.
std::string pools_text(const Fleet& fleet, const FleetPlan& plan);
// Pools, value and bound, the devices that are used.
std::string fleet_plan_text(const Fleet& fleet, const FleetPlan& plan);

Shown fleet_planners_shown();
Shown fleet_comparison_shown(const Fleet& fleet, const std::vector<ComparedFleetPlan>& plans);

std::string fleet_explanation_text(const Fleet& fleet, const FleetPlan& plan, const FleetExplanation& why);
Json fleet_explanation_json(const Fleet& fleet, const FleetPlan& plan, const FleetExplanation& why);

// Of a plan that was made again for `fleet`.
std::string replanned_fleet_text(const Fleet& fleet, const FleetReplan& result);
Json replanned_fleet_json(const Fleet& fleet, const FleetReplan& result);

}  // namespace heddle
