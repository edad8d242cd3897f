// The common part of list planners: a partial schedule that tells where and when an op would finish, and
// takes it there. Transfers take their route's time and never wait for each other here; the evaluator judges
// the result with contention.
#pragma once

#include <optional>
#include <vector>

#include "heddle/plan/builder.h"
#include "placement_costs.h"

namespace heddle {

struct Slot {
  double start = 0, finish = kImpossible;
};

class ListSchedule {
 public:
  // insertion: an op may use a gap between two others; else it goes behind the last on its device.
  ListSchedule(const Problem& problem, const PlacementCosts& costs, bool insertion);

  // When an op whose predecessors are all placed would run on a device. finish is kImpossible where it
  // cannot.
  Slot probe(OpId op, size_t device) const;
  void place(OpId op, size_t device, const Slot& slot);
  void place(OpId op, size_t device) { place(op, device, probe(op, device)); }
  // Is there room for the op's parameters?
  bool fits(OpId op, size_t device) const;

  size_t device_of(OpId op) const { return device_[op.index()]; }
  double finish_of(OpId op) const { return finish_[op.index()]; }
  double makespan() const { return makespan_; }
  // Devices, and the ops by start time (ties: topological order): what build_plan() needs.
  Assignment assignment() const;

 private:
  double ready_at(OpId op, size_t device) const;
  double earliest_free(size_t device, double from, double duration) const;
  int64_t missing_params(OpId op, int pool) const;

  const Problem& problem_;
  const PlacementCosts& costs_;
  bool insertion_;
  struct Busy {
    double start, finish;
  };
  std::vector<std::vector<Busy>> busy_;  // per resource, by start
  std::vector<size_t> device_;
  std::vector<double> start_, finish_;
  std::vector<std::vector<bool>> has_param_;  // per pool
  std::vector<int64_t> param_bytes_;          // per pool
  std::vector<double> load_done_;             // per device: when its load queue is through (cold)
  double makespan_ = 0;
  bool limited_ = false;  // some pool has a limit, or parameters are loaded
};

// Ops by falling priority among the ready (ties: smaller id), which is a topological order.
std::vector<OpId> priority_order(const Graph& graph, const std::vector<double>& priority);

// HEFT's upward rank: mean time, plus over successors the largest of mean transfer and rank (Topcuoglu et al.
// 2002, eq. 8).
std::vector<double> upward_ranks(const Problem& problem, const PlacementCosts& costs);

// No device has room for an op or can run it: which, and what to do.
Error no_room(const Problem& problem, OpId op);

}  // namespace heddle
