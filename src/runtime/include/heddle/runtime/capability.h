// What the devices' backends cannot run, as costs that no planner can choose.
#pragma once

#include <span>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/graph.h"

namespace heddle {

class Model;

// Asks each device's backend about every op of the model and sets the cost of each unit with a refused op to
// kImpossible there. `units` is the model's graph or a coarsening of it. Fails (unsupported), naming the unit
// and a backend's reason, where none of the devices can run a unit. Backends that this program does not have
// are not asked. O(ops * backends + units * devices).
Status forbid_refused(const Model& model, const Graph& units, const Cluster& cluster,
                      std::span<const DeviceId> devices, CostTable& costs);

}  // namespace heddle
