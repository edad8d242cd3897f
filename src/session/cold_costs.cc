#include <algorithm>

#include "heddle/base/errors.h"
#include "heddle/cost/cost.h"
#include "heddle/plan/cold_start.h"
#include "session_parts.h"

namespace heddle {
namespace {

Result<std::vector<std::vector<ParamId>>> residents(const Problem& problem,
                                                    const ResidentParameters& resident) {
  if (!resident.file.empty()) return resident_from_file(problem, resident.file);
  return with_context(resident_fraction(problem, resident.fraction), "resident parameters");
}

bool has_parameters(const Graph& graph, OpId unit) {
  const auto& params = graph.op(unit).params;
  return std::any_of(params.begin(), params.end(), [&](ParamId p) { return graph.param(p).bytes > 0; });
}

}  // namespace

void put_host_access(const Session& session, const Problem& problem, CostTable& costs) {
  if (!session.store || !session.loaded.model) return;
  const auto measured = measured_cost_model(session.store, signature_of(session.loaded));
  CostContext context;
  context.batch = problem.batch;
  for (const DeviceId id : problem.usable_devices()) {
    Device in_place = problem.cluster->device(id);
    if (in_place.target.empty() || !needs_load(*problem.cluster, id)) continue;
    in_place.target = host_access_target(in_place.target);
    for (size_t u = 0; u < problem.graph->num_ops(); ++u) {
      const OpId unit(u);
      if (!has_parameters(*problem.graph, unit)) continue;
      const auto cost = measured->segment(*problem.graph, {&unit, 1}, in_place, context);
      if (!cost) continue;
      // Both were measured, but at different moments. Reading from further away is never faster.
      const Cost usual = costs.at(unit, id);
      const bool comparable = usual.origin == Origin::kMeasured;
      costs.set_host_access(unit, id, comparable ? std::max(cost->us, usual.us) : cost->us);
    }
  }
}

Status measure_host_access(Session& session, const ProblemSettings& settings, const Control& control) {
  if (!settings.host_access || !session.may_measure) return {};
  const auto& graph = *session.problem.graph;
  std::vector<ProfileRequest> wanted;
  for (const DeviceId id : session.problem.usable_devices()) {
    if (!needs_load(*session.cluster, id)) continue;
    for (size_t u = 0; u < graph.num_ops(); ++u) {
      if (has_parameters(graph, OpId(u))) wanted.push_back({{OpId(u)}, id});
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(session.host_access,
                          profile_segments(session, wanted,
                                           {.min_s = kUnitSeconds,
                                            .batch = session.problem.batch,
                                            .conditions = {.host_access = true},
                                            .what = "measuring parameters read in place"},
                                           control));
  auto costs = std::make_shared<CostTable>(*session.problem.costs);
  put_host_access(session, session.problem, *costs);
  session.problem.costs = std::move(costs);
  return {};
}

Status allow_cold_start(Problem& problem, const ProblemSettings& settings) {
  const char* cold_only = first_given({{"host access", settings.host_access},
                                       {"dropped parameters", settings.drop_parameters},
                                       {"resident parameters", settings.resident.has_value()}});
  if (cold_only != nullptr && problem.objective != Objective::kColdLatency)
    return invalid_input(std::string(cold_only) +
                         ": parameters are loaded only under the objective cold-latency");
  if (settings.fixed_sharing && problem.objective == Objective::kThroughput) {
    return invalid_input(
        "fixed sharing: its factors are for latencies; leave it out for the objective throughput");
  }
  problem.execution.fixed_sharing = settings.fixed_sharing;
  problem.execution.parameter_drops = settings.drop_parameters;
  if (settings.host_access) problem.costs = with_host_access(problem);
  if (settings.resident) {
    HEDDLE_ASSIGN_OR_RETURN(problem.resident, residents(problem, *settings.resident));
  }
  return validate(problem);
}

}  // namespace heddle
