// Local search: simulated annealing over devices and order (order_search.h), over devices alone for
// throughput (load_search.h). S. Kirkpatrick et al. 1983; the moves along the critical path after van
// Laarhoven, Aarts, Lenstra 1992.
//
// Minimises the objective itself, timed as the evaluator times it; improves options.start, or the best
// constructive plan, until the deadline. O(V + E) a move at worst; timing begins at the first change and ends
// when the limit is surely exceeded. Exploits all of the execution model, devices that share cores included.
// Ignores known segments of several ops.
#include "core/portfolio.h"
#include "improve.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_local_search(const Problem& problem, const PlannerOptions& options) {
  return plan_from_starts(
      problem, options, [&](const std::vector<Plan>& starts, PlanStore& candidates) -> Result<PlannerOutput> {
        const std::string first = candidates.winner();
        auto result = improve(problem, options, starts, "local-search", candidates);
        HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(result.stop, options.deadline));
        out.counters.merge(result.counters);
        if (out.detail != first && !first.empty()) out.detail = first + ", improved by local search";
        return out;
      });
}

}  // namespace

PlannerEntry local_search_planner() {
  return {{.name = "local-search",
           .description = "improves a plan by simulated annealing until the deadline",
           .source = "Kirkpatrick et al. 1983; van Laarhoven et al., Operations Research 1992",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "the whole execution model",
           .ignores = "known segments of several ops, explicit routes"},
          plan_local_search};
}

}  // namespace heddle
