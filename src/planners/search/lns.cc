// Large-neighbourhood search: parts of a plan are decided anew by CP-SAT while the rest stays (lns_window.h,
// lns_load.h), the exact evaluator times them, and local search polishes in between. P. Shaw, CP 1998; the choice
// of neighbourhoods adapts after S. Ropke and D. Pisinger, Transportation Science 40(4), 2006.
//
// Minimises the objective, from options.start or the best constructive plan and a first local search. A step
// sees some hundred ops at most, so that models of 50,000 ops are improved stretch by stretch; O(V + E) and
// half a unit of CP-SAT's work per step. Exploits unequal devices, contention of the window's transfers,
// devices that share cores, loads and memory for parameters. Ignores known segments of several ops, and in
// the model of a step contention with transfers outside the window and tensors' memory (the evaluator does
// not).
#include "plan_steps.h"

namespace heddle {
namespace {

// Of the time, for the first local search; without CP-SAT it has all of it.
constexpr double kPolishShare = 0.2;

Result<PlannerOutput> plan_lns(const Problem& problem, const PlannerOptions& options) {
  return plan_by_steps("planner lns", problem, options, [&](PlanSteps& steps) -> PortfolioSteps {
    const auto search = [&](const Deadline& d) { steps.local_search(d, options.seed, options.threads); };
    return {
        {"quick bound", of_left(1), {}, [&](const Deadline& d) { steps.quick_bound(d); }},
        {"local search", of_left(kPolishShare), {}, search},
        {"large neighbourhoods",
         of_left(1),
         {},
         [&](const Deadline& d) { steps.large_neighbourhoods(d, options.seed); }},
        {"local search", of_left(1), [&] { return !steps.has_searched(); }, search},
    };
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
