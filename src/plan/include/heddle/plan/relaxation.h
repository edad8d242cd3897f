// Tables of costs that no plan can avoid, from which solvers and searches prove their own bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/plan/problem.h"

namespace heddle {

// Time that a transfer takes at least, linear in its bytes.
struct TransferRate {
  double latency_us = 0, us_per_byte = 0;  // infinite latency: no route
  double us(double bytes) const { return latency_us + bytes * us_per_byte; }
};

// A schedule that respects only these tables is a relaxation of the problem: for every plan there is one with
// the same device per op whose makespan (or largest load) is no larger. Proofs: docs/bounds.md, sections 1, 2
// and 9. Op v takes t(v, i) on device i. A tensor of b bytes takes way_us(i, j, b) between two devices,
// without contention. In each exclusive set of devices one runs at a time.
struct Relaxation {
  std::vector<DeviceId> devices;  // usable devices; i and j index this list
  std::vector<double> time;       // op x device: CostTable::bound_times(); infinite if impossible
  // Op x device: least time from the request's start to v's end, and from v's start to the request's end.
  std::vector<double> earliest_finish, remaining;
  std::vector<TransferRate> rates;               // device x device: no route is faster
  std::vector<std::vector<uint32_t>> exclusive;  // each single device, and the devices that share a core

  double t(size_t op, size_t i) const { return time[op * devices.size() + i]; }
  double way_us(size_t from, size_t to, int64_t bytes) const {
    return from == to ? 0 : rates[from * devices.size() + to].us(static_cast<double>(bytes));
  }
};

// The problem must be validated. O((V + E) D^2). For latencies, fork-join blocks (section 9) add up to some
// seconds; they stop early at the deadline.
Relaxation relax(const Problem& problem, const Deadline& deadline = {});

}  // namespace heddle
