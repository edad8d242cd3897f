// Clusters: from files and presets, of this machine with measured links, of all ranks' machines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/copy_profile.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/rank_links.h"

namespace heddle {

// load_cluster(). For preset:local also the devices beside the CPU that OpenVINO and libtorch find.
Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset);

struct MeasuredCluster {
  CopyProfile copies;
  std::shared_ptr<const Cluster> cluster;  // with links and buses as measured
};
// Measures the copies of the cluster's accelerators. Unsupported if none of its accelerators is on this
// machine. Cancellation is an error, and nothing is kept.
Result<MeasuredCluster> measure_cluster(std::shared_ptr<const Cluster> cluster, const Control& control);

struct RankCluster {
  std::shared_ptr<const Cluster> cluster;  // on rank 0 only, like the labels
  std::vector<std::string> labels;         // of the hosts, by rank
  RankLinks links;                         // as measured
};
// Collective: all ranks call it. Describes the machines of all ranks, one after the other, and measures the
// links between them.
Result<RankCluster> measure_rank_cluster(RankGroup& group);

}  // namespace heddle
