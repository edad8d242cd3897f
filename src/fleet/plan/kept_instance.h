// Files for a report of two results that contradict each other.
#pragma once

#include <string>

#include "heddle/fleet/fleet_plan.h"

namespace heddle {

// Writes the fleet, the plan unless it is null, and the arrivals (arrivals_to_csv()) unless the text is empty to files
// beyond-bound-... in the working directory. The end of an error's text: which files these are, or why they could not
// be written.
std::string keep_instance(const Fleet& fleet, const FleetPlan* plan, const std::string& arrivals);

}  // namespace heddle
