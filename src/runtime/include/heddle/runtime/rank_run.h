// Runs a plan on several ranks, as run.h does in one process (docs/hosts.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/run.h"

namespace heddle {

// [device] the rank that runs it. With an empty `choice`, the hosts that have devices are assigned to ranks.
// If every host has exactly one rank that runs on the machine of its name, that rank gets it. Otherwise hosts
// are assigned in cluster order, several consecutive ones to a rank if there are fewer ranks than hosts. A
// single host assigns its devices in the same way. A non-empty `choice` lists each rank's devices:
// "gpu0,gpu1;cpu" (rank 0; rank 1). `host_names` is per rank. Fails if there are more ranks than hosts (or
// devices), or if `choice` repeats a device, omits one or names an unknown one.
Result<std::vector<int>> place_on_ranks(const Cluster& cluster, const std::vector<std::string>& host_names,
                                        const std::string& choice);

struct RankRunOptions {
  RunOptions run;
  std::vector<int> rank_of_device;
  bool real_transfers = false;  // RankOptions::real_transfers
};

// Called by all ranks with the same problem, plan and options; `model` may be null on ranks whose devices are
// emulated. Inputs, deadline and progress are rank 0's. Rank 0 gets the record, with step times on its own
// clock; other ranks get an empty one. All ranks get the same error.
Result<RunRecord> run_plan_on_ranks(RankGroup& group, const Problem& problem, const Plan& plan,
                                    std::shared_ptr<const Model> model, const RankRunOptions& options);

}  // namespace heddle
