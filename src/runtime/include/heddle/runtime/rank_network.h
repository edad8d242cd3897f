// Describes the measured links between ranks in the form of a cluster file.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/runtime/rank_links.h"

namespace heddle {

inline constexpr const char* kNetwork = "network";  // the switch between ranks that share bandwidth

// True if messages between some rank and several others share their bandwidth.
bool shares_ports(const RankLinks& links);
// True if a star describes the measurements: one link per rank to a switch, the slower link limiting each
// pair. The tolerance is a quarter, which exceeds the scatter of repeated measurements.
bool describes_ports(const RankLinks& links);
// Links between the ranks' memories, or between these and the switch. `memory` has the memories' names.
std::vector<Json> rank_links_json(const RankLinks& links, const std::vector<std::string>& memory);

}  // namespace heddle
