// A proven upper bound on the requests that any scheduler can answer in time with a deployment and its exact
// times. It holds even for a scheduler that knows all arrivals.
//
// Relaxation, for each model by itself:
//  1. Links are always free; a transfer takes only its time. Pools that models share belong to each of them.
//  2. Batches are ideal. A pool of n devices with batches up to B completes at most n B ceil(T / p) requests
//     in any half-open interval of length T, where p is the shortest run of any batch. Each request takes at
//     least w = min over b of run[b] / b of device time, and at least the shortest transfer and run.
//  3. The pools that pipelines have at the same position form one stage, which any request may use. If the
//     pipelines differ in length, the model has one stage: each pipeline's bottleneck, between the shortest
//     times before and after. The smaller of both counts is taken.
// So the j-th completion of a stage is at least C(j), the maximum of a(j) + least time, C(j - N(T)) + T, and
// a(i) + (j - i + 1) / rate for i <= j, where a(j) is the j-th arrival at the stage. C grows with a, and C(j)
// depends on the first j arrivals only. Windows from arrival to deadline are equally long in a model. Hence it
// is optimal to take each request, in the order of arrival, if the relaxed system answers it in time: the j-th
// request taken is never later than the j-th of any other set, by induction over j.
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
