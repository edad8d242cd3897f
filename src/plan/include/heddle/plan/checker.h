// The one checker. It recomputes feasibility from the problem alone and shares no code with planners or
// evaluator.
#pragma once

#include <string>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"

namespace heddle {

enum class Violation {
  kMalformed,  // ids or sizes out of range
  kOpMissing,
  kOpTwice,
  kNotConvex,        // a segment, or the segments among each other, are cyclic
  kDeviceForbidden,  // not usable, or cannot run the op
  kOrder,            // something starts before what it needs
  kOverlap,          // two tasks at once on one exclusive resource
  kMemory,
  kRoute,  // a route that does not exist or does not lead from source to destination
  kTransferMissing,
  kLoadMissing,
  kTime,   // a duration or the total differs from what the problem says
  kBound,  // a lower bound above the plan's value
  kShares,
  kPlacement,  // a rule of placement: ops that share a device, contiguity, the number of segments
};
const char* violation_name(Violation violation);

struct Finding {
  Violation kind;
  std::string message;  // names steps, ops, times
};

struct CheckReport {
  std::vector<Finding> findings;  // at most 20 per kind
  bool ok() const { return findings.empty(); }
};

// Does `timeline` show a feasible execution of `plan`? Every op once per lane, precedence, exclusive
// resources, memory at every moment, routes that exist, durations and totals that add up (relative tolerance
// 1e-9, at least 1e-6 us). O((V + E) log V).
CheckReport check(const Problem& problem, const Plan& plan, const Timeline& timeline);
// The same and value >= bound.
CheckReport check(const Problem& problem, const Plan& plan, const Timeline& timeline, double bound_us);

}  // namespace heddle
