// Assigns slots (requests in flight) to lanes.
#pragma once

#include <vector>

namespace heddle {

// [slot] its lane. Each lane gets at least one slot; shares determine the rest by largest remainder (ties:
// lower lane).
std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight);
// A segment has one instance per slot of its lane: per slot, which one.
std::vector<int> instances_by_lane(const std::vector<int>& slot_lane);

}  // namespace heddle
