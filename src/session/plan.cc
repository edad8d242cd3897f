// Planning with measurements in the loop.
//
// A planner sees units, and a segment of several units costs by definition the sum of theirs. A real device
// runs the segment faster than that: fusion and data layouts do not stop at the units' borders. So the plan's
// segments are measured as they would run and become part of the problem's costs, and the planner plans
// again. The bound stays proven, because CostTable::bound_times() shares each known segment's time out among
// its units.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/planners/planner.h"
#include "heddle/session/session.h"
#include "session_parts.h"

namespace heddle {
namespace {

constexpr int kRounds = 4;

// Whether memory alone speaks against the plan: united segments, for example, hold their tensors longer.
bool is_too_large(const Problem& problem, const Plan& plan) {
  const auto timeline = evaluate(problem, plan);
  if (!timeline.ok()) return false;
  const auto findings = check(problem, plan, *timeline).findings;
  return !findings.empty() &&
         std::ranges::all_of(findings, [](const Finding& f) { return f.kind == Violation::kMemory; });
}

// The best of those that fit, verified under the current costs. `proven` is a bound under these costs. An error where
// none fits, and where one that does is wrong or below a bound.
Result<PlanResult> best_of(const Problem& problem, std::vector<PlanResult> candidates,
                           const std::optional<Bound>& proven) {
  std::optional<PlanResult> best;
  for (auto& c : candidates) {
    const bool is_last_hope = !best && &c == &candidates.back();
    if (!is_last_hope && is_too_large(problem, c.plan)) continue;
    HEDDLE_ASSIGN_OR_RETURN(auto verified, verified_again(problem, std::move(c), proven));
    if (!best || verified.value_us < best->value_us) best = std::move(verified);
  }
  return std::move(*best);
}

}  // namespace

Result<Plan> with_united_segments(const Problem& problem, const Plan& plan) {
  std::vector<Lane> lanes;
  for (size_t l = 0; l < plan.lane_shares.size(); ++l) {
    auto assignment = assignment_of(problem, plan, static_cast<int>(l));
    assignment.segment = merge_segments(problem, assignment);
    lanes.push_back({std::move(assignment), plan.lane_shares[l]});
  }
  return build_plan(problem, lanes);
}

std::vector<ProfileRequest> unknown_segments(const Problem& problem, const Plan& plan) {
  std::vector<ProfileRequest> wanted;
  std::set<std::pair<std::vector<OpId>, DeviceId>> seen;
  for (const auto& s : plan.segments) {
    if (s.ops.size() > 1 && !problem.costs->knows_segment(s.ops, s.device) &&
        seen.insert({s.ops, s.device}).second) {
      wanted.push_back({s.ops, s.device});
    }
  }
  return wanted;
}

Result<PlanResult> verified_again(const Problem& problem, PlanResult result,
                                  const std::optional<Bound>& bound) {
  PlannerOutput output;
  output.plan = std::move(result.plan);
  output.bound = bound;
  output.stop = result.stop;
  output.detail = std::move(result.detail);
  output.counters = std::move(result.counters);
  output.trajectory = std::move(result.trajectory);
  return verified_result(result.planner, problem, std::move(output), result.planning_s);
}

PlannerOptions planner_options(const SearchSettings& search, const Control& control) {
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(search.time_limit_s, control.cancel);
  options.seed = search.seed;
  options.threads = search.threads;
  options.subgraph_slots = search.subgraph_slots;
  options.dominators = search.dominators;
  options.progress = control.progress;
  return options;
}

Result<const PlannerEntry*> planner_named(const std::string& name) {
  if (const auto* entry = find_planner(name)) return entry;
  std::vector<std::string> names;
  for (const auto& entry : planner_registry()) names.push_back(entry.info.name);
  return invalid_input("no planner is named '" + name + "'" + did_you_mean(name, names) +
                       "; 'heddle planners' lists them");
}

namespace {

// typed_plans(), measured.
Result<std::vector<PlanResult>> typed_candidates(Session& session, const std::string& planner,
                                                 const Control& control) {
  std::vector<PlanResult> candidates;
  std::vector<ProfileRequest> wanted;
  for (Plan& plan : typed_plans(session.problem)) {
    for (auto& request : unknown_segments(session.problem, plan)) wanted.push_back(std::move(request));
    PlanResult& result = candidates.emplace_back();
    result.planner = planner;
    result.plan = std::move(plan);
    result.detail = "types by the budget alone";
  }
  HEDDLE_RETURN_IF_ERROR(
      measure_segments(session, wanted, kUnitSeconds, "measuring segments of one type", control));
  return candidates;
}

// Plans and measures the plan's segments in turns.
Result<PlanResult> plan_measured(Session& session, const PlannerEntry& entry, const SearchSettings& search,
                                 const Control& control) {
  auto& problem = session.problem;
  std::vector<PlanResult> candidates;
  if (problem.precision && !problem.precision->units.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(candidates, typed_candidates(session, entry.info.name, control));
  }
  const auto options = planner_options(search, control);  // its time begins after these were measured
  // In such problems the planner decides the segments.
  if (problem.execution.transfers != Transfers::kRoutes) return run_planner(entry, problem, options);
  double planning_s = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto result = run_planner(entry, problem, options);
    if (!result.ok() && round == 0) return result;
    if (!result.ok()) break;
    planning_s += result->planning_s;
    HEDDLE_ASSIGN_OR_RETURN(auto plan, with_united_segments(problem, result->plan));
    // New times may make a plan faster than a bound that was proven before.
    std::optional<Bound> proven = result->bound;
    const auto wanted = session.may_measure ? unknown_segments(problem, plan) : std::vector<ProfileRequest>{};
    log_debug([&] {
      return fmt::format("round {} of planning: gap {:.1f} %, {} of {} segments to measure", round + 1,
                         100 * result->gap, wanted.size(), plan.segments.size());
    });
    if (!wanted.empty()) {
      HEDDLE_RETURN_IF_ERROR(
          measure_segments(session, wanted, kSegmentSeconds, "measuring the plan's segments", control));
      proven.reset();
    }
    auto united = *result;
    united.plan = std::move(plan);
    candidates.push_back(std::move(*result));
    candidates.push_back(std::move(united));
    HEDDLE_ASSIGN_OR_RETURN(auto best, best_of(problem, std::move(candidates), proven));
    candidates.clear();
    candidates.push_back(std::move(best));
    if (wanted.empty() || options.deadline.should_stop()) break;
  }
  auto best = std::move(candidates.front());
  best.planning_s = planning_s;
  return best;
}

Error over_budget(const PrecisionChoice& choice, const PrecisionChoice& least) {
  const auto text = [](double agreement, double mean) {
    return fmt::format("{:.4g} % of decisions and a mean error of {:.3g} of the range", 100 * agreement,
                       mean);
  };
  return infeasible("no plan keeps to the budget of " + text(choice.least_agreement, choice.most_mean) +
                    "; the least that was reached is " + text(least.agreement, least.mean) +
                    ": raise the budget, or let devices compute in f32");
}

}  // namespace

Result<PlanResult> make_plan(Session& session, const std::string& planner, const SearchSettings& search,
                             const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(planner));
  HEDDLE_ASSIGN_OR_RETURN(auto result, plan_measured(session, *entry, search, control));
  if (!session.samples) return result;
  PrecisionChoice least;
  // Twice as many units each time, so that few rounds lead to a plan in float32.
  for (int widen = 1;; widen *= 2) {
    HEDDLE_RETURN_IF_ERROR(measure_error(session, result.plan, control));
    const PrecisionChoice now = *session.problem.precision;
    if (now.holds()) return result;
    if (widen == 1 || now.mean < least.mean) least = now;
    HEDDLE_ASSIGN_OR_RETURN(const bool widened, widen_worst(session, result.plan, widen, control));
    if (!widened) return over_budget(now, least);
    HEDDLE_ASSIGN_OR_RETURN(result, plan_measured(session, *entry, search, control));
  }
}

PlanFile plan_file(const Problem& problem, const PlanResult& result, uint64_t seed) {
  PlanFile file;
  file.problem = problem;
  file.plan = result.plan;
  file.predicted = result.timeline;
  file.bound = result.bound;
  file.planner = result.planner;
  file.seed = seed;
  file.planning_s = result.planning_s;
  return file;
}

}  // namespace heddle
