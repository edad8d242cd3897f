#pragma once

#include <memory>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/copy_profile.h"

namespace heddle {

struct MeasuredCluster {
  CopyProfile copies;
  std::shared_ptr<const Cluster> cluster;  // with links and buses as measured
};

// Measures the copies of the cluster's accelerators. Unsupported where it has none that are here; cancelled:
// an error, nothing is kept.
Result<MeasuredCluster> measure_cluster(std::shared_ptr<const Cluster> cluster, const Control& control);

}  // namespace heddle
