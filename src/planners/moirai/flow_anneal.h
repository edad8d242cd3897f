// Simulated annealing over devices and order of a flow workload.
#pragma once

#include <functional>

#include "flow_timer.h"
#include "heddle/base/cancel.h"

namespace heddle {

struct FlowAnnealOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int64_t target = 0;          // a proven bound: nothing below it is looked for
  int64_t moves = 0;           // at most so many in all; 0: until the deadline
  std::vector<uint8_t> fixed;  // per op: its device stays; empty: none
  std::function<void(int64_t best, double share)> on_round;
};

struct FlowAnnealResult {
  FlowDecisions best;
  int64_t makespan = 0;
  int64_t moves = 0, rounds = 0;
};

// Rounds of annealing of doubling length, from hot to cold, each from the best so far. The start must be
// feasible. Deterministic for a seed and a number of moves.
FlowAnnealResult anneal_flows(const FlowWorkload& workload, FlowDecisions start,
                              const FlowAnnealOptions& options);

}  // namespace heddle
