#include "heddle/session/replan.h"

#include <map>

#include "heddle/base/errors.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"

namespace heddle {
namespace {

// Takes over the other row's decisions where they are better here than what was found.
Result<bool> take_better(const Replanned& from, Replanned& row) {
  auto plan = carry_over(from.problem, from.result.plan, row.problem);
  if (!plan) return false;
  const auto timeline = evaluate(row.problem, *plan);
  const double before = row.result.value_us;
  if (!timeline.ok() || objective_us(row.problem, *timeline) >= before * (1 - 1e-12)) return false;
  // It may not fit into memory here.
  if (!check(row.problem, *plan, *timeline).ok()) return false;
  PlannerOutput output;
  output.plan = std::move(*plan);
  output.bound = row.result.bound;
  output.detail = "the plan of \"" + from.what + "\"";
  HEDDLE_ASSIGN_OR_RETURN(
      row.result, verified_result(row.result.planner, row.problem, std::move(output), row.result.planning_s));
  return true;
}

Result<Problem> problem_after(const Session& session, const HardwareChange& change,
                              const ProblemSettings& settings) {
  Session other = session;
  if (change.cluster) {
    other.cluster = change.cluster;
    HEDDLE_ASSIGN_OR_RETURN(other.problem, with_cluster(session, change.cluster, settings));
  }
  return with_edits(other, change.edits, settings);
}

Status exchange(std::vector<Replanned>& rows) {
  for (bool any = true; any;) {
    any = false;
    for (Replanned& to : rows) {
      for (const Replanned& from : rows) {
        if (&from == &to) continue;
        HEDDLE_ASSIGN_OR_RETURN(const bool taken, take_better(from, to));
        any = any || taken;
      }
    }
  }
  return {};
}

}  // namespace

std::optional<Plan> carry_over(const Problem& from, const Plan& plan, const Problem& to) {
  std::map<std::string, DeviceId> there;
  for (const DeviceId d : to.usable_devices()) there[to.cluster->device(d).name] = d;
  std::vector<Lane> lanes;
  for (size_t l = 0; l < plan.lane_shares.size(); ++l) {
    Lane lane{assignment_of(from, plan, static_cast<int>(l)), plan.lane_shares[l]};
    for (DeviceId& d : lane.assignment.device) {
      const auto at = there.find(from.cluster->device(d).name);
      if (at == there.end()) return std::nullopt;
      d = at->second;
    }
    lanes.push_back(std::move(lane));
  }
  auto carried = build_plan(to, lanes);
  return carried.ok() ? std::optional<Plan>(std::move(*carried)) : std::nullopt;
}

Result<std::vector<Replanned>> replan(const Session& session, const std::vector<HardwareChange>& changes,
                                      const ProblemSettings& settings, const std::string& planner,
                                      const SearchSettings& search, const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(planner));
  HEDDLE_ASSIGN_OR_RETURN(auto base, run_planner(*entry, session.problem, planner_options(search, control)));
  std::vector<Replanned> rows{{"as it is", session.problem, std::move(base)}};
  for (const auto& change : changes) {
    HEDDLE_ASSIGN_OR_RETURN(const Problem problem,
                            with_context(problem_after(session, change, settings), change.what));
    auto options = planner_options(search, control);
    const auto start = carry_over(rows[0].problem, rows[0].result.plan, problem);
    if (start) options.start = &*start;
    auto result = with_context(run_planner(*entry, problem, options), change.what);
    if (!result.ok() && result.error().code() == Code::kCancelled) break;
    if (!result.ok()) return result.error();
    rows.push_back({change.what, problem, std::move(*result)});
  }
  HEDDLE_RETURN_IF_ERROR(exchange(rows));
  return rows;
}

}  // namespace heddle
