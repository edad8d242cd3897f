// Simulated annealing's loop: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated
// annealing", Science 220, 1983. The temperature falls geometrically; what a search knows of its moves stays
// its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/cancel.h"
#include "heddle/base/random.h"

namespace heddle {

struct Cooling {
  double hot = 0, cold = 0;  // the first and the last temperature, in the value's unit
  size_t moves = 0;          // at most so many, if the time allows them
};

// From the value `now` on, by the end of the moves or of the time, whichever comes first. Of `search` it
// calls
//   void look()            from time to time, before the first move too
//   bool propose()         makes a move; false: nothing has changed
//   double value(limit)    of what was proposed; above the limit it may be anything above
//   void keep(), undo()    the proposal
//   void note_best()       after keep(), where the value is the least so far
// Deterministic for the random numbers unless the deadline comes into it.
template <class Search>
void cool_down(Search& search, double now, const Cooling& cooling, const Deadline& deadline, Random& random) {
  constexpr size_t kMovesPerLook = 128;
  const double seconds = deadline.seconds_left();
  const bool timed = seconds < std::numeric_limits<double>::infinity();
  double best = now, temperature = cooling.hot;
  for (size_t i = 0; i < cooling.moves; ++i) {
    if (i % kMovesPerLook == 0) {
      if (deadline.should_stop()) return;
      double share = static_cast<double>(i) / static_cast<double>(cooling.moves);
      if (timed) share = std::clamp(1 - deadline.seconds_left() / seconds, share, 1.0);
      temperature = cooling.hot * std::pow(cooling.cold / cooling.hot, share);
      search.look();
    }
    if (!search.propose()) continue;
    // Accepted with probability exp((now - next) / temperature): drawn first, so that what is worse than that
    // is not timed to the end.
    const double limit = now - temperature * std::log(1 - random.unit());
    const double next = search.value(limit);
    if (!(next <= limit)) {
      search.undo();
      continue;
    }
    search.keep();
    now = next;
    if (now < best) {
      best = now;
      search.note_best();
    }
  }
}

}  // namespace heddle
