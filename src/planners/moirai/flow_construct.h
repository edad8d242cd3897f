// First decisions for a flow workload.
#pragma once

#include <optional>
#include <vector>

#include "flow_instance.h"

namespace heddle {

// The order that gives each device's ops in the workload's order, every op directly after its flows.
std::vector<uint32_t> order_of_ops(const FlowWorkload& workload, const FlowAdjacency& around,
                                   const std::vector<uint32_t>& ops);

// Feasible decisions: each device alone that can hold everything, list schedules by falling rank (HEFT with
// ports) and, where memory is tight, what packs best. Empty when nothing was found that fits.
// O(devices * flows) each.
std::vector<FlowDecisions> construct_flows(const FlowWorkload& workload);

}  // namespace heddle
