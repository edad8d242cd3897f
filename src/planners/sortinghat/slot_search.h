// A heuristic start for a submodel's program: greedy placing, then local search on equations 9 to 23.
#pragma once

#include <optional>

#include "heddle/base/cancel.h"
#include "slot_timer.h"

namespace heddle {

// Less excess, then a smaller total, then buses and devices free earlier.
struct SlotCost {
  double excess = kImpossible, total = kImpossible, free = kImpossible;
  friend bool operator<(const SlotCost& a, const SlotCost& b) {
    if (a.excess != b.excess) return a.excess < b.excess;
    if (a.total != b.total) return a.total < b.total;
    return a.free < b.free;
  }
};
SlotCost slot_cost(SlotTimer& timer, const Slots& slots);

// nullopt when no choice was found that satisfies equations 2 to 8. Deterministic for the seed unless the
// deadline cuts it short; `rounds` moves per node.
std::optional<Slots> search_slots(const SlotProblem& problem, uint64_t seed, size_t rounds,
                                  const Deadline& deadline);

}  // namespace heddle
