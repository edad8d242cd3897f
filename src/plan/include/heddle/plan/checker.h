// The checker. It recomputes feasibility from the problem alone and shares no code with planners or
// evaluator.
#pragma once

#include <optional>
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
  kNotConvex,        // a segment, or the graph of contracted segments, is cyclic
  kDeviceForbidden,  // not usable, or cannot run the op
  kOrder,            // a step starts before one that it depends on
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

// Checks that `timeline` is a feasible execution of `plan`: every op once per lane, precedence, exclusive
// resources, memory at every moment, existing routes, durations and totals that add up. Tolerance: relative
// 1e-9, at least 1e-6 us. With `bound_us`, also that the value is not below the bound. O((V + E) log V).
CheckReport check(const Problem& problem, const Plan& plan, const Timeline& timeline,
                  std::optional<double> bound_us = {});

}  // namespace heddle
