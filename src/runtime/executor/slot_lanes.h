// Which lane each request in flight belongs to.
#pragma once

#include <vector>

namespace heddle {

// At least one slot per lane; the rest by shares, largest remainder first (ties: lower lane). Per slot its
// lane.
std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight);
// A segment has one instance per slot of its lane: per slot, which one.
std::vector<int> instances_by_lane(const std::vector<int>& slot_lane);

}  // namespace heddle
