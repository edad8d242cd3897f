// A cluster with one change, for "what if" questions.
#pragma once

#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

struct ClusterEdit {
  std::string add;     // one more device like this one, with the same links
  std::string remove;  // without this device and its links
  std::string scale;   // this device or link...
  double factor = 1;   // ...this many times as fast (a device's `speed`, a link's bandwidth)
  double memory = 1;   // every limited memory is this many times as large
};

// A device and its variants are one piece of hardware: an edit of one is an edit of all of them. Unknown names
// change nothing. Ids stay the same unless a device is added or removed. A scaled device gets a class of its own and
// loses its `target`, because no time is known for them; edit_problem() divides the times of before by the factor.
Result<std::shared_ptr<const Cluster>> edit_cluster(const Cluster& cluster, const ClusterEdit& edit);

// Whether it is the name of the device or of another one on the same hardware: its physical device or a variant.
bool names_hardware_of(const Cluster& cluster, const std::string& name, DeviceId device);

}  // namespace heddle
