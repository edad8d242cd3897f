// A cluster with one change, for "what if" questions.
#pragma once

#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

struct ClusterEdit {
  std::string add;     // device to duplicate, with its links
  std::string remove;  // device to remove, with its links
  std::string scale;   // device or link to scale...
  double factor = 1;   // ...by this factor (a device's `speed`, a link's bandwidth)
};

// Unknown names change nothing. Ids stay the same unless a device is added or removed. A scaled device gets a
// class of its own and loses its `target`, because its measurements no longer apply.
Result<std::shared_ptr<const Cluster>> edit_cluster(const Cluster& cluster, const ClusterEdit& edit);

}  // namespace heddle
