#include "slot_lanes.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace heddle {

std::vector<int> slots_by_share(const std::vector<double>& shares, int in_flight) {
  const int lanes = static_cast<int>(shares.size());
  std::vector<int> count(shares.size(), 1);
  for (int left = std::max(in_flight, lanes) - lanes; left > 0; --left) {
    size_t most = 0;
    for (size_t l = 1; l < shares.size(); ++l) {
      if (shares[l] / (count[l] + 1) > shares[most] / (count[most] + 1) + 1e-12) most = l;
    }
    ++count[most];
  }
  std::vector<int> slot_lane;
  for (int round = 0; static_cast<int>(slot_lane.size()) < std::max(in_flight, lanes); ++round) {
    for (int l = 0; l < lanes; ++l) {
      if (count[static_cast<size_t>(l)] > round) slot_lane.push_back(l);
    }
  }
  return slot_lane;
}

std::vector<int> instances_by_lane(const std::vector<int>& slot_lane) {
  std::map<int, int> next;
  std::vector<int> instances;
  for (const int lane : slot_lane) instances.push_back(next[lane]++);
  return instances;
}

}  // namespace heddle
