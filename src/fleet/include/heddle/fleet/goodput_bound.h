// What no scheduler could exceed: an upper bound on the requests that a deployment answers in time.
//
// Relaxation. A request of a model is answered by one of the model's pipelines. The run of the pipeline's k-th partition
// then lies in a window: not before the arrival plus the least time of what comes before, and not after the deadline
// minus the least time of what comes after. Requests whose windows lie inside an interval are served by runs inside it,
// and the pool's devices have room for so many of these: each device, as many as the best sequence of batches serves
// in the interval's length. All else is ignored: which device holds what, which requests share a batch, links that
// are in use, and that the future is not known.
//
//   maximise    sum x(p, j)                                  requests of group j that pipeline p serves
//   subject to  sum over pipelines p of the model of x(p, j) <= requests of group j
//               sum of x(p, j) with windows in [s, e] <= devices x most(e - s)    for each pool and interval
//
// Groups are requests of a model that arrive one after the other; a group's window is from its first arrival's begin to
// its last one's end, which only helps. Any multipliers v >= 0 of the intervals prove
//   in time <= sum of v x devices x most(e - s)
//              + sum over groups of their requests x max(0, 1 - least sum of v over the intervals of one pipeline),
// and this sum is computed here, so that nothing rests on the solver, which only finds good multipliers. Intervals are
// added where the last solution violates them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/deployment.h"

namespace heddle {

struct GoodputBoundOptions {
  Deadline deadline;          // the bound of the last round that ended before it
  int rounds = 8;             // at most so many linear programs for each part
  int64_t variables = 4'000;  // groups x pipelines of a part; fewer make the bound looser and faster
};

struct GoodputBound {
  // Models that share pools, most often a single one: their requests compete with no others.
  struct Part {
    std::vector<uint32_t> models;
    double in_time = 0;  // no scheduler answers more requests in time; a whole number is not claimed
    uint64_t arrivals = 0;
    double share() const { return arrivals ? in_time / static_cast<double>(arrivals) : 1; }
  };
  std::vector<Part> parts;
  double share() const;  // of all arrivals
};

// For exact times: no jitter, stragglers, faults or change of plan. `arrivals` must be sorted. O(rounds x (LP + pools
// x groups^2)).
Result<GoodputBound> goodput_bound(const Deployment& deployment, std::span<const Arrival> arrivals,
                                   const GoodputBoundOptions& options = {});

}  // namespace heddle
