// Updates a cluster's links and buses from copies measured on the machine itself.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

// One direction between two memories: the line fitted to measured copies.
struct MeasuredWay {
  DeviceId from, to;   // invalid: the host's memory; never both
  bool direct = true;  // between devices: false if the copy goes through host memory
  double latency_us = 0;
  double bytes_per_s = 0;
};

// Devices whose concurrent copies to or from the host are slower than separate ones.
struct SharedWays {
  std::vector<DeviceId> devices;  // two or more
  double bytes_per_s = 0;         // total of all of them
};

struct MeasuredLinks {
  std::vector<MeasuredWay> ways;
  std::vector<SharedWays> shared;     // pairwise disjoint
  std::vector<DeviceId> half_duplex;  // devices whose host path carries one direction at a time
};

// Returns the same devices, with the same ids and names, and these changes:
//   - Each device's link towards the host gets the rate and latency of its slower direction, because a link
//     has one of each; the latency of the other links on the path is subtracted. Other links and buses on the
//     path become at least as fast.
//   - Each shared set gets a bus at the devices' own links; a bus that all of the set were on keeps its name.
//     Links leave a bus whose devices were all measured and share nothing. Sharing beyond these links stays.
//   - Links between devices are set likewise; devices that copy directly and had no link get one.
// Rates are rounded to three digits. Directions that were not measured stay unchanged. O(links x ways). Fails
// if a measurement has no rate or the result is not a valid cluster.
Result<std::shared_ptr<const Cluster>> with_measured_links(const Cluster& cluster,
                                                           const MeasuredLinks& measured);

}  // namespace heddle
