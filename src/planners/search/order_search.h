// Simulated annealing over devices and order of one request's ops, with moves along the critical path after
// P. J. M. van Laarhoven, E. H. L. Aarts, J. K. Lenstra, "Job shop scheduling by simulated annealing",
// Operations Research 40(1), 1992.
#pragma once

#include "device_search.h"
#include "order_timer.h"

namespace heddle {

// Temperatures are in mean times of an op.
class OrderSearch final : public DeviceSearch {
 public:
  OrderSearch(const FlatProblem& flat, FlatPlan start, const Reserve& reserve, uint64_t seed);

  bool run(const SearchRound& round, const Deadline& deadline) override;

  // For anneal().
  bool propose();
  double rise(Metropolis& rule);
  void keep();
  void undo();

 private:
  bool may_run(uint32_t op, uint32_t device) const override { return flat_.us(op, device) < kImpossible; }
  void moved(uint32_t op) override;
  bool change();
  bool shift(uint32_t op);
  bool pull_before(uint32_t first, uint32_t second);
  bool push_after(uint32_t first, uint32_t second);
  bool swap_devices(uint32_t op);
  void save_range(size_t lo, size_t hi);
  void store_range(size_t lo, const std::vector<uint32_t>& front, const std::vector<uint32_t>& back);
  void restore();
  uint32_t pick_op();
  uint32_t pick_device(uint32_t op);
  uint32_t random_neighbour(uint32_t op);
  void refresh_critical();
  void load();

  OrderTimer timer_;
  double now_us_ = kImpossible, next_us_ = kImpossible, mean_us_ = 0;
  std::vector<uint32_t> place_;  // per op: its place in now_.order
  OrderTimer::Critical critical_;
  int stale_ = 0;  // moves taken since critical_ was found
  // The move being tried.
  size_t range_lo_ = 0, first_changed_ = 0;
  std::vector<uint32_t> saved_, front_, back_;
};

}  // namespace heddle
