// A schedule under construction, to which list planners add one op after another.
#pragma once

#include <vector>

#include "core/flat_problem.h"
#include "core/param_use.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

struct ListOptions {
  bool insertion = true;  // an op may go into a gap between ops that are placed already
  bool contention =
      false;  // transfers wait for links, buses and engines, in the order in which they are decided
};

// When a device is busy: ops go behind the last one, or into gaps between ops.
class DeviceTimeline {
 public:
  struct TimeSlot {
    double start = 0, finish = kImpossible;
    bool possible() const { return finish < kImpossible; }
  };

  // The earliest slot for so much time from `ready` on.
  TimeSlot find(double ready, double us, bool insertion) const;
  // Takes a slot that find() gave last.
  void take(const TimeSlot& slot);

 private:
  struct Gap {
    double start, end;
  };
  double end_ = 0;
  std::vector<Gap> gaps_;  // before end_
};

// The devices must not overlap. Ops are placed in a topological order. Cold objective: parameters are loaded
// in the order of placing, as early as their route allows.
class ListSchedule {
 public:
  using TimeSlot = DeviceTimeline::TimeSlot;

  ListSchedule(const FlatProblem& flat, const ListOptions& options, const Reserve& reserve);

  // The earliest slot of the op on each device; impossible where it cannot run, cannot get its inputs or does
  // not fit.
  const std::vector<TimeSlot>& earliest(uint32_t op);
  // Takes the slot that earliest(op) gave last.
  void place(uint32_t op, uint32_t device);

  double finish_us(uint32_t op) const { return finish_[op]; }
  double makespan_us() const { return makespan_; }
  // Ops by start; ties in topological order.
  FlatPlan decisions() const;

 private:
  bool fits(uint32_t op, size_t device) const;
  void ready_without_contention(uint32_t op);
  double ready_with_contention(uint32_t op, size_t device, bool commit);
  double load_params(uint32_t op, size_t device, bool commit);

  const FlatProblem& flat_;
  const ListOptions options_;
  ParamRoom params_;
  std::vector<double> param_at_;        // pool x param (cold)
  std::vector<double> start_, finish_;  // per op
  std::vector<uint32_t> device_;
  std::vector<DeviceTimeline> timelines_;  // per device
  std::vector<double> ready_;              // per device, of the op asked for
  std::vector<TimeSlot> slots_;
  std::vector<double> resource_free_, load_free_;
  std::vector<std::pair<uint32_t, double>> undo_;
  std::vector<double> arrival_;  // tensor x device, negative: not sent (contention)
  double makespan_ = 0;
};

// Over the devices that can run the op; 0 where none can.
double mean_us(const FlatProblem& flat, uint32_t op);
// Of a transfer between two devices.
TransferRate mean_transfer(const FlatProblem& flat);
// Upward ranks (Topcuoglu 2002, equation 8): the longest path from the op to an exit with mean times and mean
// transfers.
std::vector<double> upward_ranks(const FlatProblem& flat);
// Ops by falling priority, each after those that it reads from (ties: topological position).
std::vector<uint32_t> order_by_priority(const FlatProblem& flat, const std::vector<double>& priority);

}  // namespace heddle
