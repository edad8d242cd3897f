#include "workbench_cold.h"

#include <algorithm>
#include <charconv>

#include "heddle/plan/cold_start.h"
#include "heddle/runtime/openvino_measurer.h"

namespace heddle::cli {
namespace {

Result<std::vector<std::vector<ParamId>>> residents(const Problem& problem, const std::string& text) {
  double fraction = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), fraction);
  if (code != std::errc() || end != text.data() + text.size()) return resident_from_file(problem, text);
  auto found = resident_fraction(problem, fraction);
  if (!found.ok()) return std::move(found).error().with_context("--resident " + text);
  return found;
}

bool has_parameters(const Graph& graph, OpId unit) {
  const auto& params = graph.op(unit).params;
  return std::any_of(params.begin(), params.end(), [&](ParamId p) { return graph.param(p).bytes > 0; });
}

}  // namespace

void put_host_access(const Workbench& bench, const Problem& problem, CostTable& costs) {
  if (!bench.store || !bench.loaded.model) return;
  const auto measured = measured_cost_model(bench.store, signature_of(bench.loaded));
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
      // Both were measured, at different moments: reading from further away makes nothing faster.
      const Cost usual = costs.at(unit, id);
      const bool comparable = usual.origin == Origin::kMeasured;
      costs.set_host_access(unit, id, comparable ? std::max(cost->us, usual.us) : cost->us);
    }
  }
}

Status learn_host_access(Workbench& bench, const ProblemFlags& flags, const Invocation& invocation) {
  if (!flags.host_access || !bench.may_measure) return {};
  std::vector<ProfileRequest> wanted;
  for (const DeviceId id : bench.problem.usable_devices()) {
    if (!needs_load(*bench.cluster, id)) continue;
    for (size_t u = 0; u < bench.problem.graph->num_ops(); ++u) {
      if (has_parameters(*bench.problem.graph, OpId(u))) wanted.push_back({{OpId(u)}, id});
    }
  }
  MeasureOptions measure;
  measure.min_s = kUnitSeconds;
  measure.max_s = 3 * kUnitSeconds;
  const auto measurer = make_host_access_measurer(bench.loaded.model, measure);
  ProfileOptions options;
  options.deadline = Deadline::never(invocation.cancel);
  options.progress = invocation.progress;
  options.batch = bench.problem.batch;
  options.host_access = true;
  options.what = "measuring parameters read in place";
  HEDDLE_ASSIGN_OR_RETURN(bench.host_access,
                          profile(*bench.problem.graph, *bench.cluster, wanted, signature_of(bench.loaded),
                                  *measurer, *bench.store, options));
  auto costs = std::make_shared<CostTable>(*bench.problem.costs);
  put_host_access(bench, bench.problem, *costs);
  bench.problem.costs = std::move(costs);
  return {};
}

Status allow_cold_start(Problem& problem, const ProblemFlags& flags) {
  const char* cold_only = flags.host_access         ? "--host-access"
                          : flags.drop_parameters   ? "--drop-parameters"
                          : !flags.resident.empty() ? "--resident"
                                                    : nullptr;
  if (cold_only != nullptr && problem.objective != Objective::kColdLatency) {
    return Error(Code::kInvalidInput,
                 std::string(cold_only) + ": parameters are loaded under --objective cold-latency only");
  }
  if (flags.fixed_sharing && problem.objective == Objective::kThroughput) {
    return Error(Code::kInvalidInput,
                 "--fixed-sharing: its factors are for latencies; leave it out for the objective throughput");
  }
  problem.execution.fixed_sharing = flags.fixed_sharing;
  problem.execution.parameter_drops = flags.drop_parameters;
  if (flags.host_access) problem.costs = with_host_access(problem);
  if (!flags.resident.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(problem.resident, residents(problem, flags.resident));
  }
  return validate(problem);
}

}  // namespace heddle::cli
