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

}  // namespace heddle
