// A batch of requests as one latency problem: DiviML, section III, where a batch may be divided among
// devices.
#pragma once

#include <functional>

#include "heddle/plan/problem.h"

namespace heddle {

inline constexpr int kMostBatchRequests = 8;

// `requests` copies of the graph side by side; copies of an op that run together on a device are a known
// segment. The makespan is the time of the whole batch: throughput = requests / makespan. In the paper's
// terms a request is the smallest part of a batch that is placed on its own (a quarter of B), `us(op, device,
// n)` is t(i,u,l) of n of these parts, infinite when that batch size is not supported, and both data and
// model parallelism are choices of devices. Parameters are shared: they count once per memory.
//
// `one` must be validated and have the latency objective. Fails when requests is not in 2..kMostBatchRequests
// or a time is negative or NaN. O(2^requests V devices).
Result<Problem> batch_problem(const Problem& one, int requests,
                              const std::function<double(OpId, DeviceId, int)>& us);

// `copies` of the graph side by side on the same devices, parameters shared, known segments left out: the
// decisions for so many lanes as those of one. Where each lane serves an equal part of the requests, the
// throughput objective's period here is `copies` times that of the lanes. Copy c's op number c * num_ops + i
// is the original's op at place i of its topological order. Fails when copies is below 1.
Result<Problem> side_by_side(const Problem& one, int copies);

}  // namespace heddle
