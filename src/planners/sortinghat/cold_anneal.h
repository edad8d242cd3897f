// Local search over a cold start's decisions: devices, ways of parameters, the order of runs and of loads.
#pragma once

#include "cold_timer.h"
#include "search/anneal.h"

namespace heddle {

// Greedy: each op, in the given order, on the device and by the way on which it ends first, where a
// microsecond of a bus counts `bus_price`. Only devices of the mask. nullopt when an op fits nowhere.
struct GreedyOptions {
  double bus_price = 0;
  bool in_place = true, helpers = true;
  std::vector<uint8_t> devices;  // per device: may it run ops?
};
std::optional<ColdDecisions> greedy_cold(const ColdTables& tables, const std::vector<uint32_t>& order,
                                         const GreedyOptions& options);

// Annealing from decisions, all moves timed exactly. Deterministic for the seed unless the deadline stops it.
class ColdAnneal : public AnnealSearch {
 public:
  ColdAnneal(const ColdTables& tables, uint64_t seed, Reserve reserve);

  // The better of two: fits, ends earlier, is done earlier on average.
  double cost(const ColdDecisions& decisions);
  // One round of `moves`, the first temperature being `heat` (relative to the cost); the best that was seen.
  ColdDecisions round(const ColdDecisions& from, size_t moves, double heat, const Deadline& deadline);
  void set_reserve(Reserve reserve) { reserve_ = std::move(reserve); }
  size_t timed() const { return timed_; }

  // For anneal().
  void look(double share, double temperature);
  bool propose();
  double rise(Metropolis& rule);
  void keep();
  void undo() {}

 private:
  bool change(ColdDecisions& d);
  void move_window(ColdDecisions& d, size_t place);
  bool change_way(ColdDecisions& d, uint32_t v);
  bool change_lead(ColdDecisions& d, uint32_t v, size_t place);
  bool shift(ColdDecisions& d, size_t place);
  uint8_t way_over(size_t device, uint32_t bus) const;
  uint32_t bus_of(size_t device, uint8_t way) const;
  void note_places(const ColdDecisions& d);
  size_t pick_place();

  const ColdTables& tables_;
  const FlatProblem& flat_;
  ColdTimer timer_;
  Random random_;
  Reserve reserve_;
  ColdDecisions now_, best_, next_;
  double now_cost_ = 0, best_cost_ = 0, next_cost_ = 0;
  std::vector<uint32_t> bus_;       // per device
  std::vector<uint32_t> place_;     // per op, in the current order
  std::vector<uint32_t> critical_;  // of the current decisions
  size_t timed_ = 0;
};

}  // namespace heddle
