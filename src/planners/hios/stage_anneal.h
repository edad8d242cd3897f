// Simulated annealing over mapping, order and grouping of stages.
#pragma once

#include <functional>

#include "heddle/base/cancel.h"
#include "stage_instance.h"
#include "stage_schedule.h"

namespace heddle {

// The temperature falls over the first of the limits that is reached; one at least must be set.
struct StageAnnealOptions {
  Deadline deadline;
  double cpu_seconds = 0;  // of the calling thread; 0: no limit
  uint64_t steps = 0;      // 0: no limit. The result is the same every time only where this alone ends it
  uint64_t seed = 1;
  double target_us = 0;  // a proven bound: nothing below it is looked for
  // Some thousand times in all: the share of the limit that is used up, and the best makespan. May be empty.
  std::function<void(double share, double best_us)> on_progress;
};

struct StageAnnealResult {
  StageSchedule best;  // never worse than the start
  double makespan_us = 0;
  uint64_t steps = 0;  // ops, or small sets of ops, that were taken out and put back
  uint64_t timed = 0;  // slots for one op whose makespan was computed exactly to choose among them
};

// The start must be a schedule that time_stages() accepts.
StageAnnealResult anneal_stages(const StageInstance& instance, const StageSchedule& start,
                                const StageAnnealOptions& options);

}  // namespace heddle
