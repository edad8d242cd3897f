#include "not_modelled.h"

#include <set>
#include <vector>

namespace heddle {

Error not_modelled(std::string_view planner, const std::string& what) {
  return unsupported(std::string(planner) + " knows no " + what + "; use another planner");
}

Status check_modelled(const Problem& problem, std::span<const DeviceId> devices, std::string_view planner) {
  const Graph& graph = *problem.graph;
  std::set<int> pools;
  for (const DeviceId d : devices) {
    const int pool = problem.cluster->memory_pool(d);
    if (problem.cluster->memory_pool_bytes(pool) > 0 && !pools.insert(pool).second)
      return not_modelled(
          planner, "devices that share their memory, such as '" + problem.cluster->device(d).name + "'");
  }
  std::vector<size_t> readers(graph.num_params(), 0);
  for (const Op& op : graph.ops())
    for (const ParamId p : op.params)
      if (++readers[p.index()] > 1) return not_modelled(planner, "parameters that several ops share");
  for (const SegmentCost& s : problem.costs->segments())
    if (s.ops.size() > 1) return not_modelled(planner, "known times of segments of several ops");
  return {};
}

}  // namespace heddle
