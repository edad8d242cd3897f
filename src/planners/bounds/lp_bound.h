// A lower bound from a linear program: where each op may be split over devices, and must still pay.
#pragma once

#include "core/flat_problem.h"
#include "heddle/base/cancel.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

// Proven for the problem as it is, for every objective. Combines paths, areas, transfers on paths and
// transfers over each device's links, which lower_bound() treats one by one. us 0 when the program is too large, or not
// solved before the deadline. `flat` covers the relaxation's devices. Proof: docs/bounds.md, section 7.
// `known`: a bound that holds already; the program builds on it.
Bound lp_bound(const FlatProblem& flat, const Relaxation& relaxation, const Deadline& deadline,
               const Bound& known = {});

}  // namespace heddle
