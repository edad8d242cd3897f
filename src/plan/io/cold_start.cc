#include "heddle/plan/cold_start.h"

#include <algorithm>
#include <map>
#include <set>

#include "heddle/base/spelling.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/plan_file.h"
#include "problem_json.h"

namespace heddle {
namespace {

using Sets = std::vector<std::set<ParamId>>;  // per memory pool

std::vector<std::vector<ParamId>> lists_of(const Sets& sets) {
  std::vector<std::vector<ParamId>> lists;
  for (const auto& set : sets) lists.emplace_back(set.begin(), set.end());
  return lists;
}

Sets empty_sets(const Problem& problem) {
  return Sets(static_cast<size_t>(problem.cluster->num_memory_pools()));
}

std::map<std::string, ParamId> params_by_name(const Graph& graph) {
  std::map<std::string, ParamId> names;
  for (size_t p = 0; p < graph.num_params(); ++p) names.emplace(graph.params()[p].name, ParamId(p));
  return names;
}

Result<ParamId> param_named(const std::map<std::string, ParamId>& params, const std::string& name,
                            const JsonCursor& cursor) {
  const auto it = params.find(name);
  if (it != params.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, id] : params) names.push_back(known);
  return cursor.error("the graph has no parameter '" + name + "'" + did_you_mean(name, names));
}

Result<Sets> sets_of_names(const Problem& problem, const JsonCursor& cursor) {
  const auto params = params_by_name(*problem.graph);
  Sets sets = empty_sets(problem);
  const auto read = [&](const std::string& name, const JsonCursor& list) -> Status {
    const DeviceId device = problem.cluster->find_device(name);
    if (!device.valid()) return list.error("the cluster has no device '" + name + "'");
    if (!needs_load(*problem.cluster, device))
      return list.error("device '" + name + "' computes in host memory, where all parameters are");
    return each([&](const JsonCursor& item) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const std::string param, item.as_string());
      HEDDLE_ASSIGN_OR_RETURN(const ParamId id, param_named(params, param, item));
      sets[static_cast<size_t>(problem.cluster->memory_pool(device))].insert(id);
      return {};
    })(list);
  };
  const auto* expected = "a plan file, or an object from devices to lists of parameter names";
  HEDDLE_RETURN_IF_ERROR(each_member(expected, read)(cursor));
  return sets;
}

// Devices and parameters are matched by name, because the plan's graph may be grouped into different units.
Result<Sets> sets_of_plan(const Problem& problem, const JsonCursor& cursor) {
  HEDDLE_ASSIGN_OR_RETURN(const PlanFile file, plan_from_json(cursor));
  const Cluster& cluster = *file.problem.cluster;
  const auto params = params_by_name(*problem.graph);
  // As in the memory model: a parameter is dropped if every segment there that uses it sets the flag.
  std::map<std::pair<DeviceId, ParamId>, bool> kept;
  for (const Segment& segment : file.plan.segments) {
    if (segment.host_access || !needs_load(cluster, segment.device)) continue;
    const DeviceId device = problem.cluster->find_device(cluster.device(segment.device).name);
    if (!device.valid() || !needs_load(*problem.cluster, device)) {
      return cursor.error("its device '" + cluster.device(segment.device).name +
                          "' is not one of this cluster's outside host memory");
    }
    for (const OpId op : segment.ops) {
      for (const ParamId p : file.problem.graph->op(op).params) {
        HEDDLE_ASSIGN_OR_RETURN(const ParamId id,
                                param_named(params, file.problem.graph->param(p).name, cursor));
        bool& stays = kept[{device, id}];
        stays = stays || !segment.drops_params;
      }
    }
  }
  Sets sets = empty_sets(problem);
  for (const auto& [key, stays] : kept) {
    if (stays) sets[static_cast<size_t>(problem.cluster->memory_pool(key.first))].insert(key.second);
  }
  return sets;
}

}  // namespace

std::shared_ptr<const CostTable> with_host_access(const Problem& problem) {
  auto costs = std::make_shared<CostTable>(*problem.costs);
  const Cluster& cluster = *problem.cluster;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const DeviceId device(d);
    const Route* route = cluster.load_route(device);
    if (!needs_load(cluster, device) || route == nullptr) continue;
    for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
      const OpId op(v);
      if (problem.costs->host_access_us(op, device) < kImpossible) continue;
      int64_t bytes = 0;
      for (const ParamId p : problem.graph->op(op).params)
        bytes = plus_bytes(bytes, problem.graph->param(p).bytes);
      if (bytes > 0)
        costs->set_host_access(op, device, std::max(costs->us(op, device), route->time_us(bytes)));
    }
  }
  return costs;
}

Result<std::vector<std::vector<ParamId>>> resident_fraction(const Problem& problem, double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return invalid_input("a fraction of " + std::to_string(fraction) + " of the parameters, expected 0 to 1");
  }
  const Graph& graph = *problem.graph;
  const double room = fraction * static_cast<double>(graph.total_param_bytes());
  std::set<ParamId> first;
  double bytes = 0;
  for (size_t p = 0; p < graph.num_params(); ++p) {
    bytes += static_cast<double>(graph.params()[p].bytes);
    if (bytes > room) break;
    first.insert(ParamId(p));
  }
  Sets sets = empty_sets(problem);
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    if (needs_load(*problem.cluster, DeviceId(d)))
      sets[static_cast<size_t>(problem.cluster->memory_pool(DeviceId(d)))] = first;
  }
  return lists_of(sets);
}

Result<std::vector<std::vector<ParamId>>> resident_from_file(const Problem& problem,
                                                             const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const Sets sets, read_json_file(path, [&](const Json& json) {
                            const JsonCursor cursor(json);
                            return cursor.has("format") ? sets_of_plan(problem, cursor)
                                                        : sets_of_names(problem, cursor);
                          }));
  return lists_of(sets);
}

}  // namespace heddle
