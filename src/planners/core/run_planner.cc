#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "heddle/base/gap.h"
#include "heddle/base/log.h"
#include "heddle/plan/checker.h"
#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"

namespace heddle {
namespace {

// A plan within this of its bound is optimal for every purpose: it is above the rounding of the times' sums.
constexpr double kOptimalWithin = 1e-9;
// Findings that an internal error quotes.
constexpr size_t kMostFindings = 3;

// A bound from a model in which a device runs one segment at a time proves nothing where it may run several,
// nor one in which all parameters are loaded and stay where they need not be.
void drop_bounds_that_do_not_hold(const std::string& planner, const Problem& problem, PlannerOutput& output) {
  const PlannerEntry* entry = find_planner(planner);
  const bool stages = problem.execution.stage_width > 1;
  const bool cold_start =
      problem.objective == Objective::kColdLatency &&
      (problem.has_host_access() || !problem.resident.empty() || problem.execution.parameter_drops);
  const bool holds = (!stages || (entry != nullptr && entry->info.stages)) &&
                     (!cold_start || (entry != nullptr && entry->info.cold_start));
  if (holds) return;
  output.bound.reset();
  for (Incumbent& seen : output.trajectory) seen.bound_us = 0;
}

Status check_supported(const PlannerEntry& entry, const Problem& problem) {
  const PlannerInfo& info = entry.info;
  if (entry.supports(problem)) return {};
  const bool other_objective =
      std::find(info.objectives.begin(), info.objectives.end(), problem.objective) == info.objectives.end();
  std::string names;
  for (const Objective o : info.objectives)
    names += (names.empty() ? "" : ", ") + std::string(objective_name(o));
  if (other_objective)
    return unsupported("planner " + info.name + " does not plan for the objective " +
                       objective_name(problem.objective) + ", only for " + names +
                       "; choose another planner, e.g. auto");
  names.clear();
  for (const Transfers t : info.transfers)
    names += (names.empty() ? "" : ", ") + std::string(transfers_name(t));
  return unsupported("planner " + info.name + " does not plan problems whose transfers are \"" +
                     transfers_name(problem.execution.transfers) + "\", only \"" + names +
                     "\"; choose another planner, e.g. auto");
}

Status check_settings(const PlannerInfo& info, const PlannerOptions& options) {
  for (const auto& [name, value] : options.settings) {
    std::string known;
    for (const PlannerSetting& setting : info.settings) {
      for (const std::string& v : setting.values) {
        if (setting.name == name && v == value) return {};
        known += (known.empty() ? "" : ", ") + setting.name + "=" + v;
      }
    }
    return invalid_input("planner " + info.name + " has no setting " + name + "=" + value +
                         (known.empty() ? "; it has no settings" : "; there are " + known));
  }
  return {};
}

Error rejected(const std::string& planner, const CheckReport& report) {
  std::string text = "planner " + planner + " returned a plan that the checker rejects: ";
  for (size_t i = 0; i < report.findings.size() && i < kMostFindings; ++i) {
    text += (i > 0 ? "; " : "") + std::string(violation_name(report.findings[i].kind)) + ": " +
            report.findings[i].message;
  }
  if (report.findings.size() > kMostFindings)
    text += "; and " + std::to_string(report.findings.size() - kMostFindings) + " more";
  return internal_error(text + "; please report this with the plan's inputs");
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  static constexpr const char* kNames[] = {"optimal", "finished", "time limit", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

Result<PlanResult> verified_result(const std::string& planner, const Problem& problem, PlannerOutput output,
                                   double planning_s) {
  auto timeline = evaluate(problem, output.plan);
  if (!timeline.ok()) {
    return internal_error("planner " + planner +
                          " returned a plan that cannot be timed: " + timeline.error().to_string());
  }
  PlanResult result;
  result.planner = planner;
  result.timeline = std::move(*timeline);
  result.value_us = objective_us(problem, result.timeline);
  result.bound = lower_bound(problem);
  drop_bounds_that_do_not_hold(planner, problem, output);
  if (output.bound && output.bound->us > result.bound.us) result.bound = *output.bound;
  const CheckReport report = check(problem, output.plan, result.timeline, result.bound.us);
  result.plan = std::move(output.plan);
  if (!report.ok()) {
    const bool only_bound =
        std::ranges::all_of(report.findings, [](const Finding& f) { return f.kind == Violation::kBound; });
    return only_bound ? below_bound(problem, result, result.bound, planner) : rejected(planner, report);
  }
  result.gap = relative_gap(result.value_us, result.bound.us);
  result.verified = true;
  result.stop = result.gap <= kOptimalWithin ? StopReason::kOptimal : output.stop;
  result.detail = std::move(output.detail);
  result.counters = std::move(output.counters);
  result.planning_s = planning_s;
  result.trajectory = std::move(output.trajectory);
  // The planner's own bounds may lie below the combinatorial bound, which is added here.
  result.trajectory.push_back({planning_s, result.value_us, result.bound.us});
  return result;
}

Result<PlanResult> run_planner(const PlannerEntry& entry, const Problem& problem,
                               const PlannerOptions& options) {
  HEDDLE_RETURN_IF_ERROR(validate(problem));
  HEDDLE_RETURN_IF_ERROR(check_supported(entry, problem));
  HEDDLE_RETURN_IF_ERROR(check_settings(entry.info, options));
  if (options.deadline.cancelled()) return cancelled_error("planning was cancelled before it began");
  const auto begin = std::chrono::steady_clock::now();
  auto output = entry.plan(problem, options);
  const double planning_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!output.ok()) return std::move(output).error().with_context("planner " + entry.info.name);
  log_debug([&] {
    return fmt::format("planner {} ended after {:.2f} s: {}{}", entry.info.name, planning_s,
                       stop_reason_name(output->stop), output->detail.empty() ? "" : "; " + output->detail);
  });
  return verified_result(entry.info.name, problem, std::move(*output), planning_s);
}

}  // namespace heddle
