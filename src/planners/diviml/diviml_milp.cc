// DiviML's mixed integer linear program on the whole graph: section IV-A, equations 1 to 7 (module_milp.cc
// has them, and what was corrected), started from the best constructive plan.
//
// Minimises the latency of one request, or of a batch of requests where the problem's known segments are
// batches. O(V^2 K + E K^2) rows. "diviml-milp" solves it by HiGHS, "diviml-cp" the same decisions by CP-SAT.
// Exploits unequal devices, transfer times and batches; ignores that transfers wait for each other (the
// evaluator does not) and memory limits.
#include "module_planner.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_diviml_milp(const Problem& problem, const PlannerOptions& options) {
  if (options.is_set("solver", "cp-sat"))
    return plan_whole(problem, options, "diviml-cp", solve_module_by_cp);
  return plan_whole(problem, options, "diviml-milp", solve_module_by_milp);
}

}  // namespace

PlannerEntry diviml_milp_planner() {
  return {{.name = "diviml-milp",
           .description = "DiviML's MILP on the whole graph, by HiGHS, from the best constructive plan",
           .source = "DiviML, section IV-A, equations 1 to 7",
           .objectives = {Objective::kLatency},
           .exploits = "unequal devices, transfer times, batches of requests; proves a bound",
           .ignores = "contention, memory limits; the bound holds with both",
           .settings = {{"solver", {"highs", "cp-sat"}, "what solves the program"}},
           .aliases = {{.name = "diviml-cp",
                        .settings = {{"solver", "cp-sat"}},
                        .description = "the same decisions as intervals, by CP-SAT"}}},
          plan_diviml_milp};
}

}  // namespace heddle
