// Simulated annealing over devices of units for max-load, contiguity not asked.
#pragma once

#include <functional>
#include <vector>

#include "placement_load.h"

namespace heddle {

struct LoadSearchOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int64_t moves = 2'000'000;  // of this round
  double heat = 0.02;         // first temperature, relative to the start's max-load
};

// The best split found from `start` (which must be allowed). The energy is what exceeds a target a little
// below the best max-load so far, plus a light weight on all accelerators' load. One to three changes at a
// time: a unit or a connected group across a border, two units exchanged, a unit anywhere. Deterministic for
// the seed when the deadline does not cut it. Returns `start` when nothing is better.
std::vector<int32_t> search_load(const PlacementUnits& units, const std::vector<int32_t>& start,
                                 const LoadSearchOptions& options);

}  // namespace heddle
