// A module's decisions as a search changes them: one order of tasks, a device for each request of each task.
// Timed as module_value() does it, but only from the first change on and only as far as anything differs.
//
// Every move of `sa`, `ea` and of the annealing of modules is timed here. On random graphs of 60, 120 and 400
// tasks (513, 1,406 and 15,918 edges, 3 devices) a move of `sa` takes 0.7, 2.4 and 21 us; 0.8, 3.3 and 28 us
// without the table of transfers, and 1.1, 3.2 and 33 us when each reader is marked as unsettled by itself.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "module_clock.h"

namespace heddle {

class ModuleSchedule {
 public:
  // The problem must outlive it. All batches of a task get one place in the order, that of the first.
  ModuleSchedule(const ModuleProblem& module, const std::vector<Batch>& batches);

  const std::vector<uint32_t>& order() const { return order_; }
  uint32_t place(uint32_t task) const { return place_[task]; }  // in the order
  uint32_t device(uint32_t task, size_t request) const { return genes_[task * requests_ + request]; }
  // First and last place of the order where that task may stand, all others as they are.
  std::pair<uint32_t, uint32_t> free_places(uint32_t task) const;

  // A move: begin_move(), then changes of devices or one move in the order, value(), and keep() or undo().
  void begin_move();
  void set_device(uint32_t task, size_t request, uint32_t device);
  void move_place(uint32_t task, uint32_t to);
  bool changed() const { return !changed_.empty(); }  // any device
  // kImpossible where it must be above the limit. O((V + E) requests) at worst.
  double value(double limit);
  double kept_value() const { return kept_.worst[n_]; }
  void keep();
  void undo();

  // Of what is kept: the tasks on a path of batches and transfers that ends last, each of which waits for the
  // next one here.
  std::vector<uint32_t> critical() const;
  // Task by task in the order, and by start.
  std::vector<Batch> batches() const;
  std::vector<Batch> decisions() const;
  using Snapshot = std::pair<std::vector<uint32_t>, std::vector<uint32_t>>;
  Snapshot snapshot() const { return {order_, genes_}; }
  // Only batches() and decisions() may follow.
  void restore(Snapshot snapshot) { std::tie(order_, genes_) = std::move(snapshot); }

 private:
  // Per place of the order: when the devices are free before it, when what stands before it ends (tails
  // added), when it ends itself; when requests of tasks finish.
  struct Times {
    Times(size_t n, size_t k, size_t requests)
        : free((n + 1) * k), worst(n + 1, 0.0), own(n, 0.0), finish(n * requests) {}
    std::vector<double> free, worst, own, finish;
  };
  void tabulate_transfers();
  void load(const std::vector<Batch>& batches);
  void rotate(uint32_t from, uint32_t to);
  void copy_finishes(const Times& from, Times& to) const;
  void find_last_reader(uint32_t task);
  void begin_timing();
  bool same_clocks(size_t i) const;
  bool time_place(size_t i, double limit);

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  const std::vector<std::vector<const ModuleProblem::Source*>> sources_;
  const bool has_tails_;
  std::vector<size_t> first_transfer_;           // per task
  std::vector<double> transfers_;                // per task, edge into it, device and device
  std::vector<uint32_t> genes_, order_, place_;  // (task, request) -> device; tasks in order; its inverse
  const std::vector<double> rest_;               // task x device: least time from its start to the end
  // `trial_.finish` is what is kept but for the places that the present move has timed.
  Times kept_, trial_;
  // Of what is kept: the latest end from a place of the order on; per task, one behind the place of its last
  // reader (0: none).
  std::vector<double> after_;
  std::vector<size_t> readers_end_;
  bool timed_ = false;
  // The move that is tried.
  std::vector<std::pair<size_t, uint32_t>> changed_;  // gene, its former device
  uint32_t moved_from_ = 0, moved_to_ = 0;
  size_t from_ = 0, settled_ = 0;  // the first changed place; one behind the last that may differ at once
  size_t end_ = 0;                 // one behind the last that was timed
};

}  // namespace heddle
