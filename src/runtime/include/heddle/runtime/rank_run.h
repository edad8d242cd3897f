// Runs a plan on several ranks: what run.h does in one process (docs/hosts.md).
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

// Which rank runs which device. `choice` empty: the cluster's hosts that have devices are dealt to the ranks,
// to the one that runs on the machine of that name where every host has exactly one such rank, else in the
// order of the cluster (several in a row to one rank where there are fewer ranks than hosts). A cluster of
// one host deals its devices in the same way. Else `choice` names the devices of each rank: "gpu0,gpu1;cpu"
// (rank 0; rank 1). `host_names`: per rank. Fails when there are more ranks than hosts (or devices), and when
// a choice names a device twice, not at all, or one that is not in the cluster.
Result<std::vector<int>> place_on_ranks(const Cluster& cluster, const std::vector<std::string>& host_names,
                                        const std::string& choice);

struct RankRunOptions {
  RunOptions run;
  std::vector<int> rank_of_device;
  bool real_transfers = false;  // RankOptions::real_transfers
};

// Called by all ranks with the same problem, plan and options; `model` may be null on ranks whose devices are
// emulated. Inputs are rank 0's, and so are deadline and progress. The record is rank 0's, with step times on
// rank 0's clock; other ranks get an empty one. An error is the same on all ranks.
Result<RunRecord> run_plan_on_ranks(RankGroup& group, const Problem& problem, const Plan& plan,
                                    std::shared_ptr<const Model> model, const RankRunOptions& options);

}  // namespace heddle
