// The search for schedules of stages: constructives, annealing from the best of them, and a proven bound.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "stage_bound.h"
#include "stage_instance.h"
#include "stage_schedule.h"

namespace heddle {

struct StageSearchOptions {
  Deadline deadline;
  double cpu_seconds = 0;  // of annealing, a thread; 0: no limit
  uint64_t steps = 0;      // of annealing, a thread; 0: no limit, or a fixed number where nothing else is set
  uint64_t seed = 1;
  int threads = 1;      // each anneals with a seed of its own; the best wins
  double bound_us = 0;  // proven elsewhere: annealing stops there
  std::function<void(double share, double best_us)> on_progress;  // of the first thread; may be empty
};

struct StageSearchResult {
  StageSchedule best;  // never worse than any constructive
  double makespan_us = 0;
  std::string start;              // the constructive it began with
  double start_us = 0;            // and its makespan
  uint64_t steps = 0, timed = 0;  // see StageAnnealResult; of all threads
};

// kInfeasible when no constructive finds a schedule; kCancelled when the deadline was cancelled before one
// was found. Deterministic for seed and threads where steps alone end it.
Result<StageSearchResult> search_stages(const StageInstance& instance, const StageSearchOptions& options);

}  // namespace heddle
