// Creates a HiGHS instance with a model through HiGHS's C interface.
#pragma once

#include <interfaces/highs_c_api.h>

#include <memory>
#include <span>

#include "heddle/solve/milp.h"

namespace heddle {

struct HighsDeleter {
  void operator()(void* highs) const { Highs_destroy(highs); }
};
using HighsPtr = std::unique_ptr<void, HighsDeleter>;

struct HighsSetup {
  bool relax = false;               // every variable continuous
  std::span<const double> fixed{};  // if given: values of integer variables, by variable index
  int threads = 1;
  uint64_t seed = 1;
  double rel_gap = 1e-6, abs_gap = 1e-9;
  double feasibility_tolerance = 1e-6;
};

// `model` must have no indicators and have passed check_model(). kInvalidInput if HiGHS rejects it
// (coefficients of 1e15 and more).
Result<HighsPtr> make_highs(const Milp& model, const HighsSetup& setup);

}  // namespace heddle
