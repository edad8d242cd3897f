// Proven lower bounds on the makespan of stages. Proofs: docs/bounds.md, section 13.
#pragma once

#include <string>

#include "heddle/base/cancel.h"
#include "stage_net.h"

namespace heddle {

struct StageBound {
  double us = 0;  // no schedule of the instance is shorter
  std::string reason;
};

// Heads and tails that pay for transfers, windows of work over all devices, and limits that are refuted: for
// a makespan T, ops that must or must not share a device are distinguished until something contradicts T.
// `upper_us` is the makespan of a known schedule (kNoTime: none): no T above it is tried. Uses each op's
// least time and work over the devices and each edge's cheapest way, so it is strongest where devices are
// alike. Of graphs above StageNet::kMostOps only the work counts. The bound so far when the deadline stops
// it. O(ops^2 log ops) a round, and some tens of rounds.
StageBound stage_bound(const StageNet& net, double upper_us, const Deadline& deadline);

}  // namespace heddle
