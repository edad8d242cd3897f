// What was measured between ranks, as links of a cluster file.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/runtime/rank_links.h"

namespace heddle {

inline constexpr const char* kNetwork = "network";  // the switch between ranks whose messages share a way

// Do messages of some rank to or from several others share their bandwidth?
bool shares_ports(const RankLinks& links);
// Then one link for each rank, to a switch, is what carries them, if the bandwidths between pairs are those
// of the slower rank's link: to a quarter, which is more than repeated measurements differ by.
bool describes_ports(const RankLinks& links);
// Links between the ranks' memories, of which `memory` has the names, or between these and the switch.
std::vector<Json> rank_links_json(const RankLinks& links, const std::vector<std::string>& memory);

}  // namespace heddle
