// What a cold start should take, from times that were measured alone: the prediction beside `heddle run
// --cold`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// One segment. Times in us, alone on an idle machine; negative and non-finite ones are errors.
struct ColdTask {
  double load_us = 0, compile_us = 0;  // by one load worker, on one core
  double run_us = 0;                   // on `threads` cores
  int threads = 1;
  int64_t bytes = 0;           // of its parameters
  bool stays = true;           // false: given up after it ran (ColdOptions::budget_bytes)
  bool resident = false;       // nothing to be loaded
  std::vector<int32_t> after;  // earlier tasks that must have run
};

struct ColdMachine {
  int cores = 1, load_workers = 1;
  int64_t budget_bytes = 0;  // 0: no limit
  bool overlap = true;
};

// From the request's start, us.
struct ColdTimes {
  double begin_us = 0, ready_us = 0;  // loading; both 0 for residents
  double start_us = 0, finish_us = 0;
};

// `tasks` in the plan's order. Load workers take them in that order when a worker and the memory are free; a
// task runs when it is loaded and those in `after` have run. What is active shares the cores: when it asks
// for more than there are, everything slows down alike. Events: O(n) of them, each O(n).
Result<std::vector<ColdTimes>> predict_cold_start(std::span<const ColdTask> tasks,
                                                  const ColdMachine& machine);

}  // namespace heddle
