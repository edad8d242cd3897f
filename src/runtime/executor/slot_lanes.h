// Which lane each request in flight belongs to.
#pragma once

#include <vector>

namespace heddle {

// At least one slot per lane; the rest by shares, largest remainder first (ties: lower lane). Per slot its
// lane.
std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight);

}  // namespace heddle
