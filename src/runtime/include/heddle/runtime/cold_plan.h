// Cuts a model into segments for a cold start on one device.
#pragma once

#include <span>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/cold_schedule.h"

namespace heddle {

// What starts take on an idle machine, by op of the problem's graph; all in us.
struct ColdCosts {
  double segment_us = 0;                   // of loading and compiling any segment, whatever its ops
  std::vector<double> compile_us, run_us;  // beside that; per op
};

// A start that was measured with nothing overlapping, per segment of its plan.
struct ColdSample {
  const Plan* plan = nullptr;
  std::vector<double> compile_us, run_us;  // loading counts as compiling
};

// Spreads what was measured over the ops. What all parts together take longer to compile than the whole is
// what segments cost; within a part an op counts as much as 1 MB of parameters. Both samples cover all ops.
// O(V + E).
Result<ColdCosts> fit_cold_costs(const Problem& problem, const ColdSample& whole, const ColdSample& parts);

// By predict_cold_start() no cut of the topological order, at borders of ops, ends its first request on a
// device of `threads` cores before this: an op's segment must be compiled on one core and all from it on must
// run, and all compiling and running share the cores. From the request's start, us. O(V).
double cold_cut_bound(const Problem& problem, const ColdCosts& costs, const ColdMachine& machine,
                      int threads);

struct ColdPlanOptions {
  int segments = 0;  // at most; 0: as many as pay
  DeviceId device;   // invalid: the usable one with the most cores (ties: the first)
  // Measured: the cut is the one with the earliest first output by predict_cold_start() on `machine`. Null:
  // slices about equally long to compile by weight alone.
  const ColdCosts* costs = nullptr;
  ColdMachine machine;
};

// Consecutive slices of the topological order. With costs, borders are moved one at a time until none leads
// to an earlier first output (O(segments * V) predictions a round, at most some hundred places a border), for
// every number of segments up to twice the load workers (4 at least); a further segment must gain a
// hundredth. Without, by weight: near each border the cut with the fewest tensors across, then the fewest
// bytes, is taken, and with 0 segments asked for there are 1 to 4, each of at least 100 ops or MB. Fails when
// the device cannot run an op. O(V + E) without costs.
Result<Plan> cold_plan(const Problem& problem, const ColdPlanOptions& options = {});

}  // namespace heddle
