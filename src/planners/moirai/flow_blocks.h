// Splitting a flow workload where everything passes through one op.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "flow_instance.h"
#include "heddle/base/cancel.h"

namespace heddle {

// Ops that every other op either feeds or follows, with no flow past them: nothing runs beside such an op,
// and no port is busy across it. Ascending. O(ops + flows).
std::vector<uint32_t> serial_ops(const FlowWorkload& workload);

struct FlowBlockOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(int64_t best, int64_t bound)> on_progress;
};

struct FlowBlockResult {
  std::optional<FlowSchedule> schedule;  // better than the start
  int64_t bound = 0;
  int64_t blocks = 0, solves = 0, proven = 0;  // proven: solves that ended with a proof
};

// Where memory binds nowhere, the best makespan is a shortest path over the serial ops and their devices,
// each block's length between two of them being a small problem of its own. Blocks begin with a combinatorial
// bound and are solved (CP-SAT) only where the shortest path uses them, until its length is proven or the
// deadline has come. nullopt when there are no blocks to gain from (memory binds, or fewer than two).
Result<std::optional<FlowBlockResult>> solve_by_blocks(const FlowWorkload& workload,
                                                       const FlowSchedule& start,
                                                       const FlowBlockOptions& options);

}  // namespace heddle
