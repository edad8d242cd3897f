// A lower bound from minimum cuts: the work of two sides of the cluster, and the data between them.
#pragma once

#include "core/flat_problem.h"
#include "heddle/base/cancel.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

// For every objective. Weighs exclusive devices and one gate (gates.h) by multipliers; the cheapest placement
// is a minimum cut between the gate's inside and the rest, and its cost a bound (the Lagrangian dual of the
// linear program without paths; the same as the program's where there are two devices). For graphs that the
// program is too large for. us is above `known_us`, or 0. Stops early at the deadline; a cut is not
// interrupted. Proof: docs/bounds.md, section 11.
Bound cut_bound(const FlatProblem& flat, const Relaxation& relaxation, double known_us,
                const Deadline& deadline);

}  // namespace heddle
