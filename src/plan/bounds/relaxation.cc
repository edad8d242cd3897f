#include "heddle/plan/relaxation.h"

#include <algorithm>

#include "bound_blocks.h"
#include "bound_tables.h"
#include "timing/resource_map.h"

namespace heddle {

Relaxation relax(const Problem& problem, const Deadline& deadline) {
  BoundTables tables(problem);
  std::vector<Block> blocks;
  if (problem.objective != Objective::kThroughput) blocks = find_blocks(tables, kManyBlockSteps, deadline);
  PathBounds paths = path_bounds(tables, blocks);
  Relaxation r;
  r.devices = std::move(tables.devices);
  r.time = std::move(tables.time);
  r.earliest_finish = std::move(paths.finish);
  r.remaining = std::move(paths.rest);
  for (const FastestWay& way : tables.ways) r.ways.push_back({way.latency_us, way.us_per_byte});
  for (uint32_t i = 0; i < r.devices.size(); ++i) r.exclusive.push_back({i});
  for (const CoreGroup& group : core_groups(*problem.cluster)) {
    std::vector<uint32_t> set;
    for (const DeviceId d : group.devices) {
      const auto it = std::lower_bound(r.devices.begin(), r.devices.end(), d);
      if (it != r.devices.end() && *it == d) set.push_back(static_cast<uint32_t>(it - r.devices.begin()));
    }
    if (set.size() > 1) r.exclusive.push_back(std::move(set));
  }
  return r;
}

}  // namespace heddle
