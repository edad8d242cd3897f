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

// The temperature falls over the first of the limits that is reached.
struct StageSearchOptions {
  Deadline deadline;
  uint64_t steps = 0;  // of annealing, a thread; 0: no limit, or a fixed number where nothing else is set
  uint64_t seed = 1;
  int threads = 1;      // each anneals with a seed of its own; the best wins
  double bound_us = 0;  // proven elsewhere: annealing stops there
  // Of the first thread, some thousand times in all: the share of the limit that is used up, and the best
  // makespan. May be empty.
  std::function<void(double share, double best_us)> on_progress;
};

struct StageSearchResult {
  StageSchedule best;  // never worse than any constructive
  double makespan_us = 0;
  std::string start;    // the constructive it began with
  double start_us = 0;  // and its makespan
  // Of all threads: ops, or small sets of ops, that were taken out and put back; places for one op whose
  // makespan was computed exactly to choose among them.
  uint64_t steps = 0, timed = 0;
};

// Simulated annealing from a schedule that time_stages() accepts, on one thread (stage_anneal.cc). One limit
// at least must be set; the result is the same every time only where `steps` alone ends it.
StageSearchResult anneal_stages(const StageInstance& instance, const StageSchedule& start,
                                const StageSearchOptions& options);

// kInfeasible when no constructive finds a schedule; kCancelled when the deadline was cancelled before one
// was found. Deterministic for seed and threads where steps alone end it.
Result<StageSearchResult> search_stages(const StageInstance& instance, const StageSearchOptions& options);

}  // namespace heddle
