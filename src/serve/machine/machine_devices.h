// The devices of this machine that a plan's virtual devices stand for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/fleet/deployment.h"

namespace heddle {

// Which of a whole device's equal parts each virtual device is, 0 .. share - 1; `share` and more where the
// device's parts of different sizes do not fit beside each other.
std::vector<int> share_parts(const Deployment& deployment);

// One part of a device, as a plan or a worker names it.
struct DeviceWish {
  std::string name;          // on this machine, such as "cpu0"
  std::string device_class;  // for messages
  int share = 1, part = 0;   // the part-th of `share` equal parts of its cores
};

// Of one plan: a core can be in one device of it.
class MachineDevices {
 public:
  explicit MachineDevices(std::shared_ptr<const Cluster> cluster) : cluster_(std::move(cluster)) {}
  // Errors: no such device here, cores that another device of the plan has, a device that cannot be split so.
  Result<Device> take(const DeviceWish& wish);

 private:
  const std::shared_ptr<const Cluster> cluster_;
  std::map<int, std::pair<std::string, std::string>> owner_;  // of a core: device, class
};

}  // namespace heddle
