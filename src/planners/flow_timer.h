// The makespan of a flow workload's decisions while a search changes them: the evaluator's number, many times a
// second. Only tasks after the first change are timed again, and a timing that surely exceeds a limit is given
// up.
#pragma once

#include <limits>
#include <vector>

#include "heddle/plan/flow_workload.h"

namespace heddle {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

// remaining[op * devices + k]: the least time from the end of op on k to the end of the schedule, over every
// path and every choice of devices along it, ports free. O(flows * devices^2).
std::vector<int64_t> least_remaining(const FlowWorkload& workload);

class FlowTimer {
 public:
  explicit FlowTimer(const FlowWorkload& workload);

  // The makespan, or kNever when it is above `limit`. Places before `from` must be timed and unchanged since the
  // last call that was kept; 0 is always right. Follow with keep() or drop().
  int64_t time(const FlowDecisions& decisions, int64_t limit, size_t from = 0);
  void keep();
  void drop();

  int64_t start(uint32_t task) const { return start_[task]; }
  int64_t end(uint32_t task) const { return end_[task]; }
  // The tasks that determine the makespan of the kept decisions, last to first. O(tasks).
  std::vector<uint32_t> critical(const FlowDecisions& decisions) const;

 private:
  struct Flat {
    uint32_t from, to;
    bool precedence;
  };
  struct Old {
    uint32_t task;
    int64_t start, end;
  };
  size_t state_size() const { return 3 * k_ + 1; }  // devices, egress, ingress, makespan

  const size_t n_, k_;
  std::vector<Flat> flows_;
  std::vector<int64_t> op_ticks_, flow_ticks_, remaining_;
  std::vector<uint32_t> in_, in_begin_;
  std::vector<int64_t> start_, end_;
  // States before every kBlock-th place: kept, and of the timing under way.
  std::vector<int64_t> kept_, now_, live_;
  size_t first_block_ = 0, last_block_ = 0;
  std::vector<Old> old_;
};

}  // namespace heddle
