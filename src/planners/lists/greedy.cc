// Greedy: DiviML's baseline "Greedy" (section V-B). Latency: ops in topological order of readiness, each on
// the device where it ends first given all that is decided, without looking back into gaps. Throughput: each
// on the device where the largest load grows least.
//
// Minimises the finish of the next op, or the largest load so far. O(E k). Exploits unequal devices,
// transfers with contention, parameter loads (cold) and memory limits; ignores what comes after.
#include "construction.h"
#include "search/load_search.h"

namespace heddle {
namespace {

ListDecisions by_finish(const FlatProblem& flat) { return {topological_list(flat), earliest_finish}; }

Result<PlannerOutput> plan_greedy(const Problem& problem, const PlannerOptions& options) {
  return plan_by_list(problem, options, "greedy",
                      {.list = {.insertion = false, .contention = true},
                       .decide = by_finish,
                       .batched = BatchRule::kGreedy,
                       .throughput = least_load_plan});
}

}  // namespace

PlannerEntry greedy_planner() {
  return {{.name = "greedy",
           .description =
               "each op on the device that ends it first; throughput: on the one for which the largest load "
               "grows least",
           .source = "DiviML, section V-B (Greedy)",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "unequal devices, transfers with contention, parameter loads, memory limits",
           .ignores = "what comes after; gaps between ops"},
          plan_greedy};
}

}  // namespace heddle
