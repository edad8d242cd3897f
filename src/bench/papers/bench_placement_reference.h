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

// Columns setting, graph, workload, mode, peer, objective and feasible are needed, in any order. Rows without an objective or whose feasible is not "yes" are left out; what is neither
// contiguous nor "non-contiguous ..." (splits as given, splits cut into pieces) counts as non-contiguous.
Result<PlacementReferences> read_placement_references(const std::string& path);

}  // namespace heddle::bench
