// Ops of a cold start that load together: each load pays its route's latency once, and where ops are small
// that is much of what one device waits for.
#pragma once

#include <optional>
#include <vector>

#include "cold_timer.h"
#include "heddle/plan/builder.h"

namespace heddle {

// The whole model on one device in the given topological order, cut into segments that load as one and start
// when the last of their parameters is there; an op with parameters may read them in place instead, by
// itself. The cut with the least end when loads and reads in place follow each other on the device's route,
// which are all that it considers; of many equally promising beginnings only some are followed. nullopt when
// the device cannot run an op, or has no route for loads. O(V) labels, each with kMostBundle continuations.
std::optional<Assignment> bundled_on(const ColdTables& tables, size_t device,
                                     const std::vector<uint32_t>& order);

}  // namespace heddle
