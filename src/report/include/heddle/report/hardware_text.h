// Lists of hardware, engines and planners, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "heddle/report/shown.h"
#include "heddle/runtime/rank_links.h"
#include "heddle/session/clusters.h"

namespace heddle {

Shown backends_shown();
Shown presets_shown();
Shown catalogue_shown();
Shown planners_shown();

// Engines and precisions of each device here, with the engine's own choice first.
std::string engines_text(const Cluster& cluster, const std::vector<DeviceEngine>& engines);
Json engines_json(const Cluster& cluster, const std::vector<DeviceEngine>& engines);
// Messages between ranks, by their size, and what ranks share.
std::string rank_links_text(const RankLinks& links, const std::vector<std::string>& labels);

}  // namespace heddle
