// The makespan of a flow workload's decisions while a search changes them: the evaluator's number, many times
// a second. It times from the first change on, in whole ticks: a move on GoogLeNet's flows takes 2,000 instructions,
// keeping it 2,500 more, and the evaluator 166,000 for the whole plan.
//
// Kept decisions have heads (start times) and tails (the longest way from a task's end to the end of the
// schedule, along flows and along the order on devices and ports). Behind the last change the order is as it
// was, so the kept tails are exact there: a change that makes the schedule too long is seen soon after it
// (the makespan estimation of job shops: Adams, Balas and Zawack, Management Science 1988).
#pragma once

#include <vector>

#include "flow_instance.h"
#include "search/timer.h"

namespace heddle {

class FlowTimer {
 public:
  using Time = int64_t;

  explicit FlowTimer(const FlowWorkload& workload);

  // The makespan, or kNever when it is above `limit`. Only places `first` to `last` differ from the decisions
  // that were kept last, in their task or in the devices that the task touches. Follow with keep(), with the
  // same decisions still in place, or drop().
  int64_t time(const FlowDecisions& decisions, int64_t limit, size_t first = 0, size_t last = SIZE_MAX);
  // Whole timing.
  int64_t restart(const FlowDecisions& decisions);
  void keep();
  void drop();

  // Of the kept decisions.
  bool critical(uint32_t task) const { return end_[task] + tail_[task] == makespan_; }
  int64_t start(uint32_t task) const { return start_[task]; }
  uint32_t place(size_t task) const { return place_[task]; }

 private:
  struct Ends {
    uint32_t from, to;
    bool precedence;
  };
  struct OldTimes {
    uint32_t task;
    int64_t start, end;
  };
  // Duration and tail of a task for the one before it.
  int64_t weight(uint32_t task, const FlowDecisions& d) const;
  uint32_t furthest_reader(uint32_t task) const;
  uint32_t nearest_source(uint32_t task) const;
  int64_t finish_converged(size_t block, int64_t so_far, int64_t limit);
  void time_tails();

  const size_t n_, k_, tasks_, blocks_, forward_, backward_;  // sizes of a state
  const FlowAdjacency around_;
  std::vector<Ends> flows_;
  std::vector<int64_t> op_ticks_, flow_ticks_, remaining_;
  std::vector<uint32_t> place_;  // of each task in the kept order; exact outside of the last changed places
  std::vector<int64_t> start_, end_, tail_;
  // Before every kBlock-th place: when devices and ports are free and the makespan so far; and the longest
  // way from the first task behind on each of them. Last task's end in each block.
  std::vector<int64_t> heads_, heads_now_, tails_, block_end_, block_end_now_, live_;
  const FlowDecisions* timed_ = nullptr;        // by the last timing
  size_t first_ = 0, last_ = 0, timed_to_ = 0;  // of the last timing; blocks
  int64_t makespan_ = 0, makespan_now_ = 0;
  std::vector<OldTimes> old_;
};
static_assert(Timer<FlowTimer, FlowDecisions>);

// All start times of the decisions. O(flows * devices^2).
FlowSchedule time_flows(const FlowWorkload& workload, const FlowDecisions& decisions);

}  // namespace heddle
