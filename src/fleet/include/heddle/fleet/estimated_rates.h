// Estimates of the rate at which requests arrive to fill a batch (FleetModel::estimated_rate_per_s), for
// fleets that do not state it. PPipe's published planner takes this rate from an NP plan (no partitioning) in
// which batches fill at once.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/ppipe_data.h"

namespace heddle {

// Each model's rate, 1/s, in planner `np`'s max-min plan of the fleet when batches fill at once. Another plan
// of equal value may give other rates to models that are not the bottleneck. Infeasible if no single device
// serves some model in time. O(np).
Result<std::vector<double>> np_rates(const Fleet& fleet, const FleetPlanOptions& options = {});

// Each model's rate, 1/s, in the first published plan for this cluster that has exactly the fleet's models,
// in any order, and weights. If there is none, the error names the weights of the first plan with these
// models, if any. O(plans x models).
Result<std::vector<double>> published_rates(const Fleet& fleet, const std::string& cluster,
                                            const std::vector<PpipeReference>& references);

// Sets every model's rate. Invalid input unless there is one rate per model, each finite and above 0.
Status set_estimated_rates(Fleet& fleet, const std::vector<double>& rates_per_s);

}  // namespace heddle
