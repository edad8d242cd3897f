// Simulated annealing over devices and order of one request's ops, with moves along the critical path after
// P. J. M. van Laarhoven, E. H. L. Aarts, J. K. Lenstra, "Job shop scheduling by simulated annealing",
// Operations Research 40(1), 1992.
#pragma once

#include <vector>

#include "anneal.h"
#include "core/param_use.h"
#include "order_timer.h"

namespace heddle {

class OrderSearch : public AnnealSearch {
 public:
  OrderSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed);

  // One round from the best decisions so far, temperatures in mean times of an op. False when the deadline
  // stopped it.
  bool run(const SearchRound& round, const Deadline& deadline);

  const FlatPlan& best() const { return best_; }
  double best_us() const { return best_us_; }
  // Bytes of parameters beyond the limits in best(): 0 unless nothing that fits has been found.
  int64_t best_excess() const { return best_excess_; }
  uint64_t moves_tried() const { return tried_; }

  // For anneal().
  bool done() const { return best_excess_ == 0 && best_us_ <= stop_at_us_; }
  bool propose();
  double rise(Metropolis& rule);
  void keep();
  void undo();

 private:
  bool change();
  bool change_device(uint32_t op, uint32_t device);
  bool shift(uint32_t op);
  bool pull_before(uint32_t first, uint32_t second);
  bool push_after(uint32_t first, uint32_t second);
  bool change_group(uint32_t op);
  bool swap_devices(uint32_t op);
  void save_range(size_t lo, size_t hi);
  void store_range(size_t lo, const std::vector<uint32_t>& front, const std::vector<uint32_t>& back);
  void restore();
  uint32_t pick_op();
  uint32_t pick_device(uint32_t op);
  uint32_t random_neighbour(uint32_t op);
  void refresh_critical();
  void take_if_best(int64_t excess);
  void load(const FlatPlan& plan);

  const FlatProblem& flat_;
  OrderTimer timer_;
  Random random_;
  ParamUse params_;
  FlatPlan now_, best_;
  double now_us_ = kImpossible, best_us_ = kImpossible;
  int64_t now_excess_ = 0, best_excess_ = 0;
  double stop_at_us_ = 0, mean_us_ = 0;
  std::vector<uint32_t> place_;  // per op: its place in now_.order
  OrderTimer::Critical critical_;
  int stale_ = 0;  // moves taken since critical_ was found
  uint64_t tried_ = 0;
  // The move being tried.
  double next_us_ = kImpossible;
  int64_t next_excess_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> moved_;  // op, its old device
  size_t range_lo_ = 0, first_changed_ = 0;
  std::vector<uint32_t> saved_;
  std::vector<uint32_t> mark_;  // per op: stamp
  uint32_t stamp_ = 0;
  std::vector<uint32_t> front_, back_;
};

}  // namespace heddle
