// Predicts the times of a cold start from times measured in isolation; `heddle run --cold` shows the prediction.
// Cuts a model into segments for a cold start on one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

// One segment. Times in us, measured alone on an idle machine; negative and non-finite times are errors.
struct ColdTask {
  double load_us = 0, compile_us = 0;  // by one load worker, on one core
  double run_us = 0;                   // on `threads` cores
  int threads = 1;
  int64_t bytes = 0;           // size of its parameters
  bool stays = true;           // false: dropped after its run (ColdOptions::budget_bytes)
  bool resident = false;       // already loaded
  std::vector<int32_t> after;  // earlier tasks that must have run before
};

struct ColdMachine {
  int cores = 1, load_workers = 1;
  int64_t budget_bytes = 0;  // 0: no limit
  bool overlap = true;
};

// In us from the request's start.
struct ColdTimes {
  double begin_us = 0, ready_us = 0;  // loading; both 0 for resident tasks
  double start_us = 0, finish_us = 0;
};

// `tasks` are in the plan's order. Load workers take them in that order as soon as a worker and the memory
// are free. A task runs when it is loaded and the tasks in `after` have run. Active tasks share the cores: if
// they want more cores than there are, all slow down equally. O(n) events of O(n) each.
Result<std::vector<ColdTimes>> predict_cold_start(std::span<const ColdTask> tasks,
                                                  const ColdMachine& machine);

// Costs of cold starts on an idle machine, by op of the problem's graph; in us.
struct ColdCosts {
  double segment_us = 0;                   // fixed cost of loading and compiling any segment
  std::vector<double> compile_us, run_us;  // additional, per op
};

// A measured start without overlap, per segment of its plan.
struct ColdSample {
  const Plan* plan = nullptr;
  std::vector<double> compile_us, run_us;  // compiling includes loading
};

// Distributes measured times over the ops. segment_us is the parts' extra compile time over the whole, per
// further segment. Within a part, an op's weight is 1 plus its parameters in MB. Both samples cover all ops.
// O(V + E).
Result<ColdCosts> fit_cold_costs(const Problem& problem, const ColdSample& whole, const ColdSample& parts);

// Lower bound, us, on predict_cold_start()'s end of the first request, for all cuts of the topological order
// at ops on `threads` cores. Each op's segment is compiled on one core, then the op and all later ones run;
// compiling and running share workers and cores. O(V).
double cold_cut_bound(const Problem& problem, const ColdCosts& costs, const ColdMachine& machine,
                      int threads);

struct ColdPlanOptions {
  int segments = 0;  // maximum; 0: as many as pay off
  DeviceId device;   // invalid: the usable device with the most cores (ties: the first)
  // Measured costs: the plan is the cut with the earliest first output by predict_cold_start() on `machine`.
  // Null: slices of about equal compile time, estimated by weight.
  const ColdCosts* costs = nullptr;
  ColdMachine machine;
};

// Cuts the topological order into consecutive slices. With costs: moves one border at a time until no move
// gives an earlier first output (O(segments * V) predictions a round, at most some hundred positions per
// border). It tries every number of segments up to twice the load workers (at least 4); each further segment
// must gain 1 %. Without costs, by weight: near each border it takes the cut with the fewest tensors across,
// then the fewest bytes. With segments = 0 it makes 1 to 4, each of at least 100 ops or MB. Fails if the
// device cannot run an op. O(V + E) without costs.
Result<Plan> cold_plan(const Problem& problem, const ColdPlanOptions& options = {});

}  // namespace heddle
