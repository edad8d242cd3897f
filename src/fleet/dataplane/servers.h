// Which server each device of a class stands on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

// The part of the time for which a device's batches need a server's links at the plan's full rate.
struct LinkLoad {
  double up = 0, down = 0;
  double most() const { return up > down ? up : down; }
  bool operator==(const LinkLoad&) const = default;
};

// [device] its server, from 0 on without a gap. The class has `count` devices in servers of `per_server`. The devices
// that need a link most come first. Each goes to the server whose busier link is then the least busy, of equal ones to
// the first. So pools that send and pools that receive share servers. O(n log n + different loads x servers).
std::vector<uint32_t> spread_over_servers(std::span<const LinkLoad> devices, int64_t count,
                                          int64_t per_server);

}  // namespace heddle
