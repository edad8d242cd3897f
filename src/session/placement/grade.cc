#include "heddle/session/grade.h"

#include <algorithm>

#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "heddle/plan/bounds.h"
#include "heddle/runtime/profiler.h"
#include "session_parts.h"

namespace heddle {
namespace {

constexpr double kBoundSeconds = 1;

// The device of each unit, whose ops are all on one. In a file that holds a whole problem the units are its ops.
std::vector<DeviceId> devices_of_units(const Session& session, const Placement& placement) {
  if (session.loaded.given) return placement.device;
  const Graph& units = *session.problem.graph;
  std::vector<DeviceId> devices;
  for (size_t u = 0; u < units.num_ops(); ++u) {
    const OpId unit(u);
    devices.push_back(placement.device[finest_ops(units, {&unit, 1})[0].index()]);
  }
  return devices;
}

Status check_devices(const Problem& problem, const std::vector<DeviceId>& devices) {
  for (size_t u = 0; u < devices.size(); ++u) {
    const std::string what = quote_text(problem.graph->op(OpId(u)).name) + " is placed on " +
                             problem.cluster->device(devices[u]).name;
    if (!problem.may_use(devices[u]))
      return invalid_input(what + ", which is not among the devices that the plan may use");
    if (problem.costs->us(OpId(u), devices[u]) >= kImpossible)
      return invalid_input(what + ", which cannot run it");
  }
  return {};
}

// A session whose units keep to the placement.
Result<Grade> open_graded(const ModelSpec& source, const LoadedModel* loaded, const std::string& text,
                          std::optional<PlacementFormat> format, ProblemSettings settings,
                          const Control& control) {
  Grade result;
  HEDDLE_ASSIGN_OR_RETURN(auto given, open_given(source, settings));
  if (given) {
    result.session = std::move(*given);
    HEDDLE_ASSIGN_OR_RETURN(
        result.placement,
        with_context(parse_placement(text, format, *result.session.problem.graph, *result.session.cluster),
                     "placement"));
    return result;
  }
  LoadedModel model;
  if (loaded != nullptr) {
    model = *loaded;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(model, load_model(source));
  }
  if (model.simulation)
    return unsupported(source.path +
                       ": simulation instances have equal devices; plan one and grade that plan file");
  if (settings.cluster == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(settings.cluster, open_cluster("preset:local"));
  }
  if (model.model) {
    HEDDLE_ASSIGN_OR_RETURN(settings.cluster,
                            choose_variants(settings.cluster, settings.variants, settings.devices));
  }
  HEDDLE_ASSIGN_OR_RETURN(
      result.placement,
      with_context(parse_placement(text, format, *model.graph, *settings.cluster), "placement"));
  for (const DeviceId device : result.placement.device)
    settings.keep_apart.push_back(static_cast<int>(device.index()));
  HEDDLE_ASSIGN_OR_RETURN(result.session, open_session(source, std::move(model), settings, control));
  return result;
}

// Adds what is known of the segments of `from`; true if there was something to add.
bool add_segments(const CostTable& from, Problem& problem) {
  auto costs = std::make_shared<CostTable>(*problem.costs);
  bool added = false;
  for (const SegmentCost& segment : from.segments()) {
    if (costs->knows_segment(segment.ops, segment.device)) continue;
    costs->set_segment(segment);
    added = true;
  }
  problem.costs = std::move(costs);
  return added;
}

}  // namespace

Result<Grade> grade(const ModelSpec& source, const LoadedModel* loaded, const std::string& placement,
                    std::optional<PlacementFormat> format, ProblemSettings settings,
                    const std::string& planner, const SearchSettings& search, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(Grade result,
                          open_graded(source, loaded, placement, format, std::move(settings), control));
  Session& session = result.session;
  Session placed = session;
  const auto devices = devices_of_units(session, result.placement);
  HEDDLE_RETURN_IF_ERROR(check_devices(session.problem, devices));
  placed.problem.costs = std::make_shared<const CostTable>(session.problem.costs->placed(devices));
  HEDDLE_ASSIGN_OR_RETURN(const PlanResult as_placed,
                          with_context(make_plan(placed, planner, search, control), "as placed"));
  HEDDLE_ASSIGN_OR_RETURN(const PlanResult free, make_plan(session, planner, search, control));

  Bound bound = free.bound;
  // Under the costs of more segments the planner's bound need not hold.
  if (add_segments(*placed.problem.costs, session.problem)) {
    bound = lower_bound(session.problem);
    if (session.problem.objective == Objective::kLatency)
      bound = destructive_bound(session.problem, bound, std::min(as_placed.value_us, free.value_us),
                                Deadline::after_seconds(kBoundSeconds, control.cancel));
  }
  HEDDLE_ASSIGN_OR_RETURN(result.graded, verified_again(session.problem, as_placed, bound));
  HEDDLE_ASSIGN_OR_RETURN(result.best, verified_again(session.problem, free, bound));
  if (result.graded.value_us < result.best.value_us) result.best = result.graded;
  return result;
}

}  // namespace heddle
