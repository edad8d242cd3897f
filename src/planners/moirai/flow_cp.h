// A flow workload as a constraint program for CP-SAT.
#pragma once

#include <optional>
#include <vector>

#include "flow_instance.h"
#include "heddle/base/cancel.h"

namespace heddle {

inline constexpr int32_t kAnyDevice = -1;

struct FlowCpOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int threads = 1;
  std::vector<int32_t> device;         // per op, or kAnyDevice; empty: all free
  const FlowSchedule* hint = nullptr;  // feasible; also the limit of what is looked for
  int64_t at_least = 0;                // a proven bound
  std::optional<int64_t> wanted;       // only schedules below this
};

struct FlowCpResult {
  std::optional<FlowSchedule> schedule;  // better than the hint; evaluated again
  int64_t bound = 0;                     // proven for the workload with those devices
};

// heads[op * devices + k]: no schedule (with `device` fixed as in the options) has op on k end earlier;
// kNever where it may not be there. O(flows * devices^2).
std::vector<int64_t> least_heads(const FlowWorkload& workload, const std::vector<int32_t>& device);

// Order by start of a feasible schedule: evaluating it gives no later starts. O(tasks log tasks).
FlowDecisions decisions_of(const FlowWorkload& workload, const FlowSchedule& schedule);

// Fails when the solver does.
Result<FlowCpResult> solve_flows(const FlowWorkload& workload, const FlowCpOptions& options);

}  // namespace heddle
