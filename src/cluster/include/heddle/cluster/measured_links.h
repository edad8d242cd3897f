// A cluster whose links and buses are what copies on the machine itself have shown.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// One direction between two memories: what a line through measured copies says.
struct MeasuredWay {
  DeviceId from, to;   // invalid: the host's memory; never both
  bool direct = true;  // between devices: false when it takes a stop in host memory
  double latency_us = 0;
  double bytes_per_s = 0;
};

// Devices whose ways to the host carry less at once than one after another would suggest.
struct SharedWays {
  std::vector<DeviceId> devices;  // two or more
  double bytes_per_s = 0;         // of all of them together
};

struct MeasuredLinks {
  std::vector<MeasuredWay> ways;
  std::vector<SharedWays> shared;     // sets without common devices
  std::vector<DeviceId> half_duplex;  // ways to the host that go one direction at a time
};

// The same devices, with ids and names as they were, and
//   - on each device's link towards the host the slower direction's rate and latency (less that of the other
//     links on the way), for a link has one of each; other links and buses on the way are at least as fast;
//   - a bus for each shared set, by the link at the device (one that all of the set were on keeps its name),
//     and none for links of a bus whose devices were all measured and share nothing. What devices share
//     beyond that link stays as it is;
//   - on links between devices the same, and a new link where they copy directly and had none.
// Rates are rounded to three digits. Ways that were not measured stay. O(links x ways). Fails where a way has
// no rate, or the result is no cluster.
Result<std::shared_ptr<const Cluster>> with_measured_links(const Cluster& cluster,
                                                           const MeasuredLinks& measured);

}  // namespace heddle
