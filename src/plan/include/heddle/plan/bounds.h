// Proven lower bounds on the objective, from the problem alone.
#pragma once

#include <string>

#include "heddle/base/cancel.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct Bound {
  double us = 0;       // no plan's value is less
  std::string reason;  // "critical path", "area", "head + area + tail", ...
};

// Latency: the best of the critical path with each op on its fastest device and free transfers, the area
// bound on unequal devices (the LP's dual, improved until the deadline: any dual point is a proof), and
// windows head + area + tail; cold: also every parameter over some bus. Throughput: area. Proofs in
// docs/bounds.md. O((V + E) log V + D V * rounds).
Bound lower_bound(const Problem& problem, const Deadline& deadline = {});

// For latencies: supposes that a plan of T exists, takes from each op the devices on which it could not meet
// T, and bounds what is left; a bound above T refutes it. T rises from `known`, which must hold already, for
// as long as it is refuted; never beyond `value_us`, a plan's. The answer is `known` or better. Destructive
// bounds: R. Klein, A. Scholl, "Computing lower bounds by destructive improvement", EJOR 112, 1999. Up to
// some seconds for tens of thousands of ops; stops early at the deadline. docs/bounds.md, section 10.
Bound destructive_bound(const Problem& problem, const Bound& known, double value_us,
                        const Deadline& deadline = {});

}  // namespace heddle
