// Turns what the backends cannot run into costs that no planner can choose.
#pragma once

#include <span>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/graph.h"

namespace heddle {

class Model;

// Asks each device's backend about every op of the model. Each unit with a refused op gets the cost
// kImpossible on that device. `units` is the model's graph or a coarsening of it. Fails (unsupported) if no
// device can run some unit; the error names the unit and a backend's reason. Devices whose backend is not in
// this program are skipped. O(ops * backends + units * devices).
Status forbid_refused(const Model& model, const Graph& units, const Cluster& cluster,
                      std::span<const DeviceId> devices, CostTable& costs);

}  // namespace heddle
