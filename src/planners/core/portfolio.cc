#include "portfolio.h"

#include <algorithm>
#include <array>

#include "lists/construction.h"

namespace heddle {

std::vector<Plan> run_portfolio(const Problem& problem, const PlannerOptions& options,
                                std::span<const std::string_view> names, PlanStore& candidates) {
  std::vector<Plan> plans;
  PlannerOptions quiet = options;
  quiet.progress = nullptr;
  quiet.start = nullptr;
  quiet.settings.clear();
  for (size_t i = 0; i < names.size(); ++i) {
    if (options.deadline.cancelled() || (options.deadline.expired() && !candidates.empty())) break;
    const PlannerEntry* entry = find_planner(names[i]);
    if (entry == nullptr || !entry->supports(problem.objective)) continue;
    auto out = entry->plan(problem, quiet);
    report_progress(options, "planner " + entry->info.name, static_cast<double>(i + 1),
                    static_cast<double>(names.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
    if (!out.ok()) continue;
    candidates.offer(out->plan, entry->info.name);
    plans.push_back(std::move(out->plan));
  }
  return plans;
}

std::span<const std::string_view> constructive_planners(Objective objective) {
  static constexpr std::array<std::string_view, 9> kLatency{
      "single", "heft", "heft-links", "lookahead", "greedy", "critical-path", "met", "m-sct", "getf"};
  static constexpr std::array<std::string_view, 4> kThroughput{"single", "greedy", "met", "pipeline"};
  if (objective == Objective::kThroughput) return kThroughput;
  return kLatency;
}

std::vector<Plan> starting_plans(const Problem& problem, const PlannerOptions& options,
                                 PlanStore& candidates) {
  if (options.start == nullptr)
    return run_portfolio(problem, options, constructive_planners(problem.objective), candidates);
  candidates.offer(*options.start, "the plan to improve");
  return {*options.start};
}

Result<PlannerOutput> plan_from_starts(
    const Problem& problem, const PlannerOptions& options,
    const std::function<Result<PlannerOutput>(std::vector<Plan> starts, PlanStore& candidates)>& improve) {
  PlanStore candidates(problem);
  auto starts = starting_plans(problem, options, candidates);
  if (options.deadline.cancelled() && candidates.empty())
    return candidates.output(StopReason::kCancelled, options.deadline);
  return improve(std::move(starts), candidates);
}

}  // namespace heddle
