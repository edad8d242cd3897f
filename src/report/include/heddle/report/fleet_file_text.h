// Fleet files that were made here: their models' times, and the types that a budget allows.
#pragma once

#include <cstdint>
#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/session/fleet_profile.h"

namespace heddle {

// A line for each model and class: its whole time at batch 1 and at `batches`, the largest, and where it comes from.
std::string new_fleet_table(const Fleet& fleet, int64_t batches);
// The same for measured times, with those of the smallest share.
std::string measured_fleet_table(const Fleet& fleet, int64_t batches);
Json fleet_models_json(const Fleet& fleet);

// What the budget has decided, one line for each model.
std::string fleet_precision_text(const FleetPrecision& chosen);
Json fleet_precision_json(const FleetPrecision& chosen);

}  // namespace heddle
