// A module's decisions as a search changes them: one order of tasks, a device for each request of each task.
// Timed as module_value() does it, but only from the first change on and only as far as anything differs.
#pragma once

#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "module_clock.h"

namespace heddle {

class ModuleSchedule {
 public:
  // The problem must outlive it. All batches of a task get one place in the order, that of the first.
  ModuleSchedule(const ModuleProblem& module, const std::vector<Batch>& batches);

  size_t num_places() const { return n_; }
  // Of the order: places of `module.tasks`.
  const std::vector<uint32_t>& order() const { return order_; }
  uint32_t at(uint32_t place) const { return at_[place]; }
  uint32_t device(uint32_t place, size_t request) const { return genes_[place * requests_ + request]; }
  const std::vector<uint32_t>& readers(uint32_t place) const { return out_[place]; }
  bool possible(uint32_t p, uint32_t d) const {
    return m_.allows(p, d) && model_.us(m_.tasks[p], d, 1) < kImpossible;
  }
  // First and last place of the order where that task may stand, all others as they are.
  std::pair<uint32_t, uint32_t> free_places(uint32_t p) const;

  // A move: begin_move(), then changes of devices or one move in the order, value(), and keep() or undo().
  void begin_move();
  void set_device(uint32_t p, size_t request, uint32_t device);
  void move_place(uint32_t p, uint32_t to);
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
  struct In {
    uint32_t from;
    int64_t bytes;
  };
  // Per place of the order: when the devices are free before it, when what stands before it ends (tails
  // added), when it ends itself; when requests of tasks finish.
  struct Times {
    Times(size_t n, size_t k, size_t requests)
        : free((n + 1) * k), worst(n + 1, 0.0), own(n, 0.0), finish(n * requests) {}
    std::vector<double> free, worst, own, finish;
  };
  std::span<const In> inputs(uint32_t p) const {
    return std::span<const In>(in_).subspan(in_begin_[p], in_begin_[p + 1] - in_begin_[p]);
  }
  void load(const std::vector<Batch>& batches);
  void unsettle_readers(uint32_t p);
  void rotate(uint32_t from, uint32_t to);
  void begin_timing();
  bool same_clocks(size_t i) const;
  bool time_place(size_t i, double limit);

  const ModuleProblem& m_;
  const TaskModel& model_;
  const size_t n_, k_, requests_;
  std::vector<uint32_t> in_begin_;
  std::vector<In> in_;
  std::vector<std::vector<uint32_t>> out_;
  std::vector<std::vector<const ModuleProblem::Source*>> sources_;
  bool has_tails_ = false;
  std::vector<uint32_t> genes_, order_, at_;  // (place, request) -> device; places in order; its inverse
  const std::vector<double> rest_;            // place x device: least time from its start to the end
  Times kept_, trial_;
  std::vector<double> after_;  // of what is kept: the latest end from a place of the order on
  bool timed_ = false;
  // The move that is tried.
  std::vector<std::pair<size_t, uint32_t>> changed_;  // gene, its former device
  uint32_t moved_from_ = 0, moved_to_ = 0;
  size_t from_ = 0, settled_ = 0;  // the first changed place; one behind the last that may differ at once
  size_t end_ = 0;                 // one behind the last that was timed
};

}  // namespace heddle
