// Routes between all pairs of a topology's nodes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

inline constexpr double kRouteMessageBytes = 1 << 20;  // message size for which routes are fastest

using RouteTable = std::vector<std::optional<Route>>;  // row-major, nodes x nodes

// Ties go to fewer hops, then to the smaller link ids in order. Fails when work or memory would exceed a
// limit that only artificial topologies reach.
Result<RouteTable> fastest_routes(std::span<const Node> nodes, std::span<const Link> links,
                                  std::span<const Bus> buses);

}  // namespace heddle
