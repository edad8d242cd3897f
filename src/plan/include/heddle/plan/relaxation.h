// What every plan must pay, in tables: the ground on which solvers and searches prove bounds of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/plan/problem.h"

namespace heddle {

// A schedule that respects these tables alone is a relaxation of the problem: to every plan there is one with
// the same device per op whose makespan (or largest load) is no larger. Proofs: docs/bounds.md, sections 1,
// 2 and 9. Op v takes t(v, i) on device i; a tensor of b bytes needs way_us(i, j, b) between two devices
// (contention left out); one device of each exclusive set runs at a time.
struct Relaxation {
  std::vector<DeviceId> devices;  // usable; i and j count in it
  std::vector<double> time;       // op x device: CostTable::bound_times(); infinite where impossible
  // Op x device: the least time from the request's start to v's end, and from v's start to the request's end.
  std::vector<double> earliest_finish, remaining;
  struct Way {
    double latency_us = 0, us_per_byte = 0;  // infinite latency: none
  };
  std::vector<Way> ways;                         // device x device: the fastest conceivable
  std::vector<std::vector<uint32_t>> exclusive;  // every device by itself, and those around a shared core

  double t(size_t op, size_t i) const { return time[op * devices.size() + i]; }
  double way_us(size_t from, size_t to, int64_t bytes) const {
    const Way& w = ways[from * devices.size() + to];
    return from == to ? 0 : w.latency_us + static_cast<double>(bytes) * w.us_per_byte;
  }
};

// The problem must be validated. O((V + E) D^2), and for latencies up to some seconds for fork-join blocks
// (section 9), which end early at the deadline.
Relaxation relax(const Problem& problem, const Deadline& deadline = {});

}  // namespace heddle
