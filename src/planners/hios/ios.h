// IOS's dynamic program (Ding et al., "IOS: Inter-Operator Scheduler for CNN Acceleration", MLSys 2021) for
// the ops of one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/cancel.h"
#include "stage_instance.h"

namespace heddle {

// The pruning of section 4.3: stages of at most `groups` groups of at most `group_ops` ops. A group's ops
// run one after another.
struct IosPruning {
  size_t groups = 2;     // s
  size_t group_ops = 3;  // r
};

// A stage: its groups, each in topological order. Groups have no edges between them.
using IosGroups = std::vector<std::vector<uint32_t>>;

struct IosResult {
  std::vector<IosGroups> stages;  // in order
  double us = 0;                  // the sum of their times
  bool exact = true;              // the least under the pruning; false: it was cut into parts
};

// The least time for these ops on the device one stage after another, inputs from elsewhere being there.
// `ops` in a topological order. The program is exact between ops that every other op comes before or after;
// where such a piece has more than 64 ops or too many states, it is cut into parts of 10 consecutive ops.
// After the deadline ops run one by one.
IosResult ios_schedule(const StageInstance& instance, size_t device, std::span<const uint32_t> ops,
                       const IosPruning& pruning, const Deadline& deadline);

}  // namespace heddle
