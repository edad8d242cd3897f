// Lanes that are copies of each other on devices of one kind have segments of the same ops. Compiled once for all of them,
// they read the same weights: half the memory for two lanes, and what one core reads, the next one finds in the cache
// that they share (AlexNet on two cores: 7.2 ms a request with a copy for each, 5.8 ms with one for both).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"
#include "seats.h"

namespace heddle {

// [segment of the plan] the first segment that it is compiled together with, itself if there is none: the same ops on a
// device of the same host, class, engine and precision. Segments with false in `eligible` and members of stages stay
// alone. O(segments x log segments) comparisons of lists of ops.
std::vector<int32_t> segments_to_share(const Problem& problem, const Plan& plan, const Seats& seats,
                                       const std::vector<bool>& eligible);

// One lane's part of `segment`: its slots from `first_slot` on.
std::unique_ptr<CompiledSegment> share_of_segment(std::shared_ptr<CompiledSegment> segment, int first_slot);

}  // namespace heddle
