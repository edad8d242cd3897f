// Large-neighbourhood search: parts of a plan are decided anew by CP-SAT while the rest stays (lns_window.h,
// lns_load.h), the exact evaluator judges, and local search polishes in between. P. Shaw, CP 1998; the choice
// of neighbourhoods adapts after S. Ropke and D. Pisinger, Transportation Science 40(4), 2006.
//
// Minimises the objective, from options.start or the best constructive plan and a first local search. A step
// sees some hundred ops at most, so that models of 50,000 ops are improved stretch by stretch; O(V + E) and
// half a unit of CP-SAT's work per step. Exploits unequal devices, contention of the window's transfers,
// devices that share cores, loads and memory for parameters. Ignores known segments of several ops, and in
// the model of a step contention with transfers outside the window and tensors' memory (the evaluator does
// not).
#include "core/portfolio.h"
#include "improve.h"
#include "lists/construction.h"
#include "lns_rounds.h"

namespace heddle {
namespace {

// Of the time, for the first local search; without CP-SAT it has all of it.
constexpr double kPolishShare = 0.2;
constexpr double kAtBound = 1 + 1e-9;

Result<PlannerOutput> plan_lns(const Problem& problem, const PlannerOptions& options) {
  return plan_from_starts(
      problem, options, [&](const std::vector<Plan>& starts, PlanStore& candidates) -> Result<PlannerOutput> {
        PlannerOptions first = options;
        first.deadline = options.deadline.sooner(kPolishShare * options.deadline.seconds_left());
        const auto improved = improve(problem, first, starts, "local-search", candidates);
        StopReason stop = improved.stop;
        std::map<std::string, double> counters = improved.counters;
        if (!candidates.empty() && stop != StopReason::kOptimal) {
          const FlatProblem flat(problem, problem.usable_devices());
          const Plan start = *candidates.best();
          const auto result = lns_rounds(
              problem, flat, options, start, improved.bound_us * kAtBound, [&](const Assignment& assignment) {
                const bool better = candidates.offer(assignment, "lns");
                report_progress(options, "planner lns", 0, 0, candidates.value_us(), improved.bound_us);
                return better;
              });
          stop = result.stop;
          counters["lns_steps"] = static_cast<double>(result.counts.steps);
          counters["lns_better"] = static_cast<double>(result.counts.better);
          counters["lns_complete"] = static_cast<double>(result.counts.complete);
          if (!result.ran && !options.deadline.should_stop())
            stop = improve(problem, options, {start}, "local-search", candidates).stop;
        }
        HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(stop, options.deadline));
        out.counters.merge(counters);
        return out;
      });
}

}  // namespace

PlannerEntry lns_planner() {
  return {{.name = "lns",
           .description = "frees a part of a plan at a time, which CP-SAT decides anew, until the deadline",
           .source = "Shaw, CP 1998; Ropke and Pisinger, Transportation Science 2006",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "unequal devices, transfers with contention, loads, shared cores, parameter memory",
           .ignores = "known segments of several ops, but for the start; explicit routes"},
          plan_lns};
}

}  // namespace heddle
