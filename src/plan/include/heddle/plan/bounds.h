// Proven lower bounds on the objective, computed from the problem alone.
#pragma once

#include "heddle/base/cancel.h"
#include "heddle/base/proof.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct Bound {
  double us = 0;  // no plan has a smaller value
  Proof proof;
};

// Latency: the largest of three bounds. Critical path: each op on its fastest device, with free transfers.
// Area on unequal devices: the LP's dual, improved until the deadline; every dual point is a proof. Windows:
// head + area + tail. Cold starts add loading every parameter over some bus. Throughput: area. Proofs in
// docs/bounds.md. O((V + E) log V + D V * rounds).
Bound lower_bound(const Problem& problem, const Deadline& deadline = {});

// Destructive bounds for latencies: assumes that a plan of T exists, removes from each op the devices on
// which it could not meet T, and bounds the rest; a bound above T refutes T. T starts at `known`, which must
// already be proven, and grows while it is refuted, up to `value_us`, the value of a plan. Returns `known` or
// better. R. Klein, A. Scholl, "Computing lower bounds by destructive improvement", EJOR 112, 1999. Takes up
// to some seconds for tens of thousands of ops; stops early at the deadline. docs/bounds.md, section 10.
Bound destructive_bound(const Problem& problem, const Bound& known, double value_us,
                        const Deadline& deadline = {});

}  // namespace heddle
