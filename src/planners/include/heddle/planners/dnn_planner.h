// Plans DnnWorkloads (heddle/plan/dnn_workload.h): the portfolio over all methods for their two objectives.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"
#include "heddle/plan/dnn_split.h"
#include "heddle/planners/trajectory.h"

namespace heddle {

struct DnnPlanOptions {
  Deadline deadline;  // one without an end is taken as 60 s; optimality or cancellation end it earlier
  int threads = 2;
  uint64_t seed = 1;
  ProgressSink* progress = nullptr;  // may be null; times are shown as if the workload's were milliseconds
};

struct DnnPlan {
  DnnSplit split;                 // evaluated and checked
  double value = 0;               // the evaluator's
  double bound = 0;               // proven: no split under these rules is better; never above value
  std::string planner, bound_by;  // which method gave the split, which the bound
  bool optimal = false;           // value and bound agree within 1e-6
  double seconds = 0;
  std::vector<Incumbent> trajectory;  // in the workload's unit
};

// Anytime: the best split when the deadline ends it. Each method is deterministic for its seed; they share
// incumbents as time allows, so two runs that are cut short may differ. Errors: no split was found (memory,
// nodes that no device can run), or a method returned what the checker refuses (an internal error).
// Max-load, contiguous: linearised orders, then the exact programme over ideals.
// Max-load: these as a start, annealing in all threads, CP-SAT in one.
// Latency: greedy and linearised orders as a start, annealing in all threads, CP-SAT in one.
Result<DnnPlan> plan_dnn(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options);

}  // namespace heddle
