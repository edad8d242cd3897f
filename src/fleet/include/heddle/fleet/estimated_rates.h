// The rate at which requests arrive to fill a batch (FleetModel::estimated_rate_per_s), where nobody states
// it. PPipe's published planner takes it from an NP plan that was made without the time in which batches
// fill.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/ppipe_data.h"

namespace heddle {

// What each model gets, 1/s, from `np`'s max-min plan of the fleet when batches fill at once. Models that are
// not the bottleneck may have other rates in another plan that is as good. Infeasible when a model is served
// in time by no device alone. O(np).
Result<std::vector<double>> np_rates(const Fleet& fleet, const FleetPlanOptions& options = {});

// What the first of the published plans for this cluster has for the fleet's models with the fleet's weights,
// 1/s, in any order of the models; not found: an error that names the weights of the plans that there are.
// O(plans x models).
Result<std::vector<double>> published_rates(const Fleet& fleet, const std::string& cluster,
                                            const std::vector<PpipeReference>& references);

// Sets every model's rate. As many rates as models, each finite and above 0; else invalid input.
Status set_estimated_rates(Fleet& fleet, const std::vector<double>& rates_per_s);

}  // namespace heddle
