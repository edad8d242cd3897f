// Simulated annealing: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing",
// Science 220, 1983. This is the only loop of its kind in Heddle: it has the schedule of temperatures, the
// limits and Metropolis's rule. A search brings its moves, its objective and the best that it has seen.
// Restarts and rounds of different heat are several calls.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heddle/base/cancel.h"
#include "heddle/base/random.h"

namespace heddle {

// One run: the temperature falls geometrically from the first move to the end of the limit that is reached
// first.
struct AnnealSchedule {
  double hot = 0, cold = 0;     // first and last temperature, in the unit of rise(); hot 0: a descent
  uint64_t moves = UINT64_MAX;  // at most so many are tried
  uint64_t moves_per_look = 128;
  bool follows_deadline = false;  // the deadline is a limit too; otherwise it only cuts the run short
  double cpu_seconds = 0;         // of the calling thread; 0: no limit
};

struct Annealed {
  uint64_t moves = 0;    // tried
  bool cut_off = false;  // by the deadline
};

// One round of a search that has a unit of its own for temperatures.
struct SearchRound {
  uint64_t moves = 0;
  double hot = 0, cold = 0;
  double stop_at_us = 0;  // a value that cannot be beaten
};

// How much of the limits is used up.
class AnnealClock {
 public:
  AnnealClock(const AnnealSchedule& schedule, const Deadline& deadline);
  double share(uint64_t moves) const;

 private:
  const AnnealSchedule& schedule_;
  const Deadline& deadline_;
  const double seconds_, cpu_begin_;
};

// Metropolis's rule: a rise is accepted with probability exp(-rise / temperature).
class Metropolis {
 public:
  explicit Metropolis(Random& random) : random_(random) {}
  // The largest rise that this move may bring: one random number a move. A search that asks for it first can
  // give up on a move before it is timed to the end.
  double most() {
    if (!drawn_) most_ = -temperature_ * std::log(1 - random_.unit());
    drawn_ = true;
    return most_;
  }
  bool accepts(double rise) {
    if (rise <= 0) return true;
    return temperature_ > 0 && rise < std::numeric_limits<double>::infinity() && rise <= most();
  }
  double temperature() const { return temperature_; }
  void set_temperature(double temperature) { temperature_ = temperature; }
  void begin_move() { drawn_ = false; }

 private:
  Random& random_;
  double temperature_ = 0, most_ = 0;
  bool drawn_ = false;
};

// What anneal() calls. A search derives from it and has, beside these,
//   bool propose()              makes a move; false: nothing has changed
//   double rise(Metropolis&)    of the objective by the move. At or below 0 the move is accepted, at infinity
//                               it is not; above most() any number above most() will do
//   void keep(), undo()         the move
struct AnnealSearch {
  // Every moves_per_look moves, before the first one too.
  void look(double /*share*/, double /*temperature*/) {}
  // Whether the search has what it looks for.
  bool done() const { return false; }
};

// The result is the same for the same random numbers unless a clock ends the run or sets its temperature.
template <class Search>
Annealed anneal(Search& search, const AnnealSchedule& schedule, const Deadline& deadline, Random& random) {
  const AnnealClock clock(schedule, deadline);
  const double fall = schedule.hot > 0 ? std::log(schedule.cold / schedule.hot) : 0;
  Metropolis rule(random);
  Annealed run;
  for (; run.moves < schedule.moves && !search.done(); ++run.moves) {
    if (run.moves % schedule.moves_per_look == 0) {
      run.cut_off = deadline.should_stop();
      const double share = clock.share(run.moves);
      if (run.cut_off || share >= 1) break;
      rule.set_temperature(schedule.hot * std::exp(fall * share));
      search.look(share, rule.temperature());
    }
    rule.begin_move();
    if (!search.propose()) continue;
    if (rule.accepts(search.rise(rule)))
      search.keep();
    else
      search.undo();
  }
  return run;
}

}  // namespace heddle
