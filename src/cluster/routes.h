// The routes between all pairs of a topology's nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

inline constexpr double kRouteMessageBytes = 1 << 20;  // routes are the fastest for this message

using RouteTable = std::vector<std::optional<Route>>;  // row-major, nodes x nodes

// Ties go to fewer hops, then to the smaller link ids in order. Fails when the work or the memory for it
// would pass a limit that only artificial topologies reach.
Result<RouteTable> fastest_routes(std::span<const Node> nodes, std::span<const Link> links,
                                  std::span<const Bus> buses);

}  // namespace heddle
