// A proven upper bound on the requests that any scheduler can answer in time with a deployment and its exact
// times. It holds even for a scheduler that knows all arrivals.
//
// Relaxation, for each model by itself:
//  1. What models share, links and pools, belongs to each of them. The links between two pools of a pipeline are a
//     pool, too: of as many servers as the pool has that stands on fewer.
//  2. Batches form freely. Let t(m) be the least time in which a device completes m requests, over all batches up
//     to the planned B. In a half-open interval of length T a device then completes at most B + |{m : t(m) < T}|
//     requests, and of the requests that arrive from some time on at most |{m : t(m) <= T}| by T after it. In the
//     long run it completes at most the best batch's requests per time.
//  3. The pools that pipelines have at the same position form one stage, which any request may use. Or the model
//     has one stage: each pipeline's bottleneck. Of a pipeline that needs at least r before and s after its
//     bottleneck, every completion is set s later and no request comes sooner than r; then all have the deadline
//     of the answer. The smaller of both counts is taken; pipelines of different length have only the latter.
// So the j-th completion of a stage is at least C(j), the maximum of
//     a(j - n) + T for each T at which n requests can be done in less after an arrival,
//     C(j - n) + T for each T at which n requests can be done in less in an interval,
//     a(i) + (j - i + 1 + sum of rate * (r + s)) / sum of rates for i far enough before j,
// where a(j) is the j-th arrival at the stage. C grows with a, and C(j) depends on the first j arrivals only.
// Windows from arrival to deadline are equally long in a model. Hence it is optimal to take each request, in the
// order of arrival, if the relaxed system answers it in time: the j-th request taken is never later than the j-th
// of any other set, by induction over j.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/deployment.h"

namespace heddle {

// [model] the bound on the requests in time. The deployment must pass check_deployment(). Lost devices only
// lower what can be served, so the bound holds with faults, too; it does not hold for times that vary or
// another plan. Error: arrivals that are unsorted or name no model. O(arrivals * pipelines * partitions).
Result<std::vector<uint64_t>> bound_in_time(const Deployment& deployment, std::span<const Arrival> arrivals);

}  // namespace heddle
