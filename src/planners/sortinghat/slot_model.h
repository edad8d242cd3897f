// SortingHat's program for one submodel: equations 1 to 23 (ICS'25, section 3.3), as a MILP for HiGHS and as
// the same rows for CP-SAT.
#pragma once

#include "heddle/base/status.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"
#include "slot_timer.h"

namespace heddle {

class SlotModel {
 public:
  // `start` must be feasible: the program looks for something better, so that no time is later than its end
  // (the paper's H).
  SlotModel(const SlotProblem& problem, const Slots& start);

  const Milp& milp() const { return milp_; }
  // Row for row, with times in whole ticks and the rows with H as implications.
  CpModel cp() const;
  // Times are in kTicks-ths of the horizon, counted from the first moment that matters, rounded up.
  double us_of(double milp_time) const { return base_ + milp_time * kTicksPerUnit * tick_; }

  Slots slots(std::span<const double> values) const;

  // How large it would be.
  static size_t count_rows(const SlotProblem& problem);

  static constexpr double kTicks = 1e6, kTicksPerUnit = 1000;

 private:
  double units(double us) const;  // a duration, in whole ticks
  bool allowed(size_t node, size_t slot) const;
  void set(Var var, double value) { milp_.set_start(var, value); }
  void rescale(const Slots& start);
  void add_variables();
  void assignment();
  void data_movement();
  void memory();
  void parameter_copy();
  void subgraph_inference();
  void start_from(const Slots& start);

  SlotProblem p_;  // in units
  std::vector<std::vector<uint32_t>> readers_;
  double base_ = 0, tick_ = 1, horizon_ = 0;
  Milp milp_;
  // Node x slot; copy: (node x device) x slot. A variable with index -1 is 0.
  std::vector<Var> x_, z_, edge_in_, copy_in_;
  std::vector<Var> load_start_, load_finish_, start_, finish_;  // per slot
  std::vector<Var> node_finish_;
  Var total_;
};

}  // namespace heddle
