// The only door to planners: what goes in is a valid problem, what comes out is an evaluated, checked and
// bounded plan.
#include <algorithm>
#include <chrono>

#include "heddle/plan/checker.h"
#include "heddle/planners/judge.h"
#include "heddle/planners/planner.h"

namespace heddle {
namespace {

// Improving the bound may take so long; its first value takes no such limit.
constexpr double kBoundSeconds = 2;

std::string first_findings(const CheckReport& report) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < report.findings.size() && i < kShown; ++i) {
    text += (i ? "; " : "") + std::string(violation_name(report.findings[i].kind)) + ": " +
            report.findings[i].message;
  }
  return text;
}

bool supports(const PlannerInfo& info, Objective objective) {
  return std::find(info.objectives.begin(), info.objectives.end(), objective) != info.objectives.end();
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kOptimal:
      return "optimal";
    case StopReason::kFinished:
      return "finished";
    case StopReason::kTimeLimit:
      return "time limit";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<PlanResult> judge_plan(const std::string& planner, const Problem& problem, PlannerOutput output,
                              double planning_s) {
  PlanResult r;
  r.planner = planner;
  r.plan = std::move(output.plan);
  auto timeline = evaluate(problem, r.plan);
  if (!timeline.ok())
    return Error(Code::kInternal,
                 "planner '" + planner + "' made a malformed plan: " + timeline.error().to_string());
  r.timeline = std::move(timeline).value();
  r.value_us = objective_us(problem, r.timeline);
  r.bound = lower_bound(problem, Deadline::after_seconds(kBoundSeconds));
  if (output.bound && output.bound->us > r.bound.us) r.bound = *output.bound;
  const auto report = check(problem, r.plan, r.timeline, r.bound.us);
  if (!report.ok())
    return Error(Code::kInternal,
                 "planner '" + planner + "' made a plan that fails the check: " + first_findings(report));
  r.verified = true;
  r.gap = r.bound.us > 0 ? (r.value_us - r.bound.us) / r.bound.us : r.value_us > 0 ? kImpossible : 0;
  // Rounding at most: what lies on its bound is optimal.
  r.stop = r.value_us <= r.bound.us * (1 + 1e-9) ? StopReason::kOptimal : output.stop;
  r.detail = std::move(output.detail);
  r.counters = std::move(output.counters);
  r.planning_s = planning_s;
  return r;
}

Result<PlanResult> run_planner(const PlannerEntry& entry, const Problem& problem,
                               const PlannerOptions& options) {
  HEDDLE_RETURN_IF_ERROR(validate(problem));
  if (!supports(entry.info, problem.objective)) {
    std::string names;
    for (const auto o : entry.info.objectives)
      names += (names.empty() ? "" : ", ") + std::string(objective_name(o));
    return Error(Code::kUnsupported, "planner '" + entry.info.name + "' does not plan for " +
                                         objective_name(problem.objective) + "; it does for " + names);
  }
  const auto began = std::chrono::steady_clock::now();
  auto output = entry.make()->plan(problem, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!output.ok()) return std::move(output).error();
  return judge_plan(entry.info.name, problem, std::move(output).value(), seconds);
}

}  // namespace heddle
