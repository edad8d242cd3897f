// The search for flow workloads (plan/flow_workload.h): first schedules, annealing, exact blocks, a
// constraint program, and a proven bound beside the answer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/plan/flow_workload.h"
#include "heddle/planners/planner.h"

namespace heddle {

struct FlowPlan {
  FlowSchedule schedule;  // evaluated and checked
  int64_t bound = 0;      // ticks, proven
  std::string bound_reason;
  double gap = 0;  // (makespan - bound) / bound
  StopReason stop = StopReason::kFinished;
  std::string detail;
  std::map<std::string, double> counters;
  double seconds = 0;
  std::vector<Incumbent> trajectory;  // in the workload's unit
  bool optimal() const { return schedule.makespan == bound; }
};

// Returns the best schedule when the deadline stops it (none: a fixed amount of annealing). kInfeasible when
// no placement was found that fits the memory. Deterministic for a seed and thread count, deadlines apart.
// options.start is ignored: it belongs to another kind of problem.
Result<FlowPlan> plan_flows(const FlowWorkload& workload, const PlannerOptions& options);

// Combinatorial bounds: the heaviest path, device by device, with its transfers; the work shared out over all
// devices (each op's least share). Ticks. O(flows * devices^2).
int64_t flow_bound(const FlowWorkload& workload);

}  // namespace heddle
