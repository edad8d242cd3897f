// Creates a HiGHS instance with a model through HiGHS's C interface.
#pragma once

#include <memory>
#include <span>

#include "heddle/solve/milp.h"
#include "highs_api.h"

namespace heddle {

struct HighsDeleter {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using HighsPtr = std::unique_ptr<void, HighsDeleter>;

// `model` must have no indicators and have passed check_model(). Takes threads, seed and gaps from the
// options; `fixed`, if not empty, has the values of the integer variables, by variable index. kInvalidInput
// if HiGHS rejects the model (coefficients of 1e15 and more).
Result<HighsPtr> make_highs(const Milp& model, const SolveOptions& options, double feasibility_tolerance,
                            std::span<const double> fixed = {});

}  // namespace heddle
