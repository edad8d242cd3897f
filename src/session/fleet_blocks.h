// What fleet files from measurements and from estimates share: the blocks of a model.
#pragma once

#include <vector>

#include "heddle/cost/cost.h"
#include "heddle/session/fleet_profile.h"

namespace heddle {

struct CutModel {
  FleetModel model;                       // name, blocks, cuts, parameters and file
  std::vector<std::vector<OpId>> blocks;  // ops of the model's own graph
};

// Cuts a model at the borders of `units`, whose times are us[class][unit] on whole devices.
Result<CutModel> cut_into_blocks(const LoadedModel& loaded, const ModelSpec& source, const Graph& units,
                                 const std::vector<std::vector<double>>& us, const BlockSettings& settings);

// The time of `cost`, which the model has on a class; widens what the model says of that class's times.
double note_source(FleetModel& model, size_t device_class, const Cost& cost);

}  // namespace heddle
