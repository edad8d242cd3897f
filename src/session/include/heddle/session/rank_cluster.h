// All ranks' machines as one cluster.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/rank_links.h"

namespace heddle {

struct RankCluster {
  std::shared_ptr<const Cluster> cluster;  // on rank 0 alone, as the labels are
  std::vector<std::string> labels;         // of the hosts, by rank
  RankLinks links;                         // as measured
};

// Called by all ranks: this machine of every rank, one after the other, and the links between them.
Result<RankCluster> measure_rank_cluster(RankGroup& group);

}  // namespace heddle
