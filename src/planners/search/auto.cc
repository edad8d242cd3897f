// Auto: what a user wants who does not want to choose. All constructive planners, then searches (local search
// on the exact evaluator, large neighbourhoods over CP-SAT) and proofs (combinatorial bounds, a linear
// program, modules one by one, CP-SAT on the whole model) with the time that is left; from a cold start half
// of it belongs to cold-search: after each other on one thread, side by side on several, around one store of
// the best plan and the best bound (auto_workers.h).
//
// Minimises the objective. Deterministic for a seed on one thread unless the deadline stops it; with several
// threads which worker finds something first is left to chance. Each constructive planner runs on every
// promising set of devices that do not share cores; the searches may mix them.
#include <algorithm>

#include "auto_workers.h"
#include "core/portfolio.h"
#include "lists/construction.h"

namespace heddle {
namespace {

bool loads_parameters(const Problem& problem) {
  const auto devices = problem.usable_devices();
  return problem.objective == Objective::kColdLatency &&
         std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId d) { return needs_load(*problem.cluster, d); });
}

// Of what the other workers do, nothing decides on host access, ways of loads or their order.
void search_cold(const Problem& problem, const PlannerOptions& options, PlanStore& store) {
  PlannerOptions part = options;
  part.deadline = options.deadline.sooner(options.deadline.seconds_left() / 2);
  auto out = find_planner("cold-search")->plan(problem, part);
  if (out.ok()) store.offer(std::move(out->plan), "cold-search");
}

Result<PlannerOutput> plan_auto(const Problem& problem, const PlannerOptions& options) {
  const CancelToken closed;
  PlanStore store(problem, closed);
  if (options.start != nullptr) store.offer(*options.start, "the plan to improve");
  auto starts = run_portfolio(problem, options, constructive_planners(problem.objective), store);
  if (loads_parameters(problem)) search_cold(problem, options, store);
  if (options.start != nullptr) starts.push_back(*options.start);
  if (options.deadline.cancelled() && store.empty())
    return store.output(StopReason::kCancelled, options.deadline);
  const std::string constructive = store.winner();
  AutoWorkers workers(problem, options, std::move(starts), store, closed);
  const StopReason stop = workers.run();
  HEDDLE_ASSIGN_OR_RETURN(auto out, store.output(stop, options.deadline));
  out.counters.merge(workers.counters());
  const bool improved = out.detail != constructive;
  out.detail = "won by " + out.detail;
  if (improved && !constructive.empty()) out.detail += " (best constructive: " + constructive + ")";
  return out;
}

}  // namespace

PlannerEntry auto_planner() {
  return {{.name = "auto",
           .description = "runs what fits in the time and keeps the best plan",
           .source = "the planners below",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "everything that the others do; sets of devices that share cores",
           .ignores = "explicit routes",
           .stages = true,
           .cold_start = true},
          plan_auto};
}

}  // namespace heddle
