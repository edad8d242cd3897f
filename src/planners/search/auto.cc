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
#include "core/factories.h"
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
  auto out = make_cold_search()->plan(problem, part);
  if (out.ok()) store.offer(std::move(out->plan), "cold-search");
}

class Auto final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    // One planner each knows the workloads of papers.
    if (problem.execution.transfers == Transfers::kGiven) return make_flow_search()->plan(problem, options);
    if (problem.execution.transfers == Transfers::kWithinRuns)
      return make_placement_search()->plan(problem, options);
    const CancelToken closed;
    PlanStore store(problem, closed);
    Candidates first(problem);
    if (options.start != nullptr) {
      first.offer(*options.start, "the plan to improve");
      store.offer(*options.start, "the plan to improve");
    }
    auto starts = run_portfolio(problem, options, constructive_planners(problem.objective), first);
    if (!first.empty()) store.offer(first.plan(), first.winner());
    if (loads_parameters(problem)) search_cold(problem, options, store);
    if (options.start != nullptr) starts.push_back(*options.start);
    if (options.deadline.cancelled() && store.empty())
      return first.output(StopReason::kCancelled, options.deadline);
    const std::string constructive = store.winner();
    AutoWorkers workers(problem, options, std::move(starts), store, closed);
    const StopReason stop = workers.run();
    // Where nothing is feasible the constructive planners' reason is as good as any.
    if (store.empty()) return first.output(stop, options.deadline);
    HEDDLE_ASSIGN_OR_RETURN(auto out, store.output(stop, options.deadline));
    out.counters.merge(workers.counters());
    const bool improved = out.detail != constructive;
    out.detail = "won by " + out.detail;
    if (improved && !constructive.empty()) out.detail += " (best constructive: " + constructive + ")";
    return out;
  }
};

}  // namespace

std::unique_ptr<Planner> make_auto() { return std::make_unique<Auto>(); }

}  // namespace heddle
