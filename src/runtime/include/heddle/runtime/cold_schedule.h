// Predicts the times of a cold start from times measured in isolation; `heddle run --cold` shows the
// prediction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/status.h"

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

}  // namespace heddle
