// The exact model of non-contiguous max-load, for CP-SAT.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "heddle/solve/cp.h"
#include "placement_units.h"

namespace heddle {

struct LoadModelCallbacks {
  std::function<void(const std::vector<int32_t>&)> split;  // a new incumbent of the solver
  std::function<void(double)> bound;                       // proven: no split has a smaller max-load
};

// Solves from `hint` until options.deadline; calls back from the solver's threads, one call at a time. The
// proven bound stays one although the solver sees integers: all times and sizes are rounded down. Splits are
// to be checked by the caller: rounding may let memory be exceeded by less than a byte a unit.
Status solve_load_model(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value,
                        SolveOptions options, const LoadModelCallbacks& callbacks);

// The same for any model of splits whose objective counts in parts of 1 / scale.
Status solve_split_model(const CpModel& model, double scale,
                         const std::function<std::vector<int32_t>(std::span<const double>)>& decode,
                         SolveOptions options, const LoadModelCallbacks& callbacks);

}  // namespace heddle
