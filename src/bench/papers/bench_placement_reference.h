// Figures of peers on placement workloads, from a CSV file beside them.
#pragma once

#include <map>
#include <string>

#include "heddle/base/status.h"

namespace heddle::bench {

struct PlacementReference {
  double value = 0;
  double tolerance = 0;  // half a unit of the last digit that the file gives
  std::string peer;
};
// The best feasible figure of each "setting/graph/workload/mode".
using PlacementReferences = std::map<std::string, PlacementReference>;

// Needs the columns setting, graph, workload, mode, peer, objective and feasible, in any order. A row counts if it has
// an objective and its feasible is "yes". A mode that is neither contiguous nor "non-contiguous ..." (splits as
// given, splits cut into pieces) is non-contiguous.
Result<PlacementReferences> read_placement_references(const std::string& path);

}  // namespace heddle::bench
