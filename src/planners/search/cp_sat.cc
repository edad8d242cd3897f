// CP-SAT on one request's schedule (cp_schedule.h), between two local searches (prove.h).
//
// Minimises the makespan of the relaxation, starting from the best plan of a short local search; what CP-SAT
// finds is timed by the evaluator and improved once more, for contention and known segments are not in the
// model. Its bound is proven for the problem as it is. Deterministic for a seed and thread count unless the
// deadline stops it.
#include "core/flat_problem.h"
#include "core/portfolio.h"
#include "prove.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_cp_sat(const Problem& problem, const PlannerOptions& options) {
  return plan_from_starts(
      problem, options, [&](std::vector<Plan> starts, PlanStore& candidates) -> Result<PlannerOutput> {
        HEDDLE_ASSIGN_OR_RETURN(auto out, search_and_prove(problem, options, std::move(starts), candidates));
        if (!out.counters.contains("cp_sat_complete"))
          out.detail += ", without CP-SAT (not needed, or too large)";
        return out;
      });
}

}  // namespace

PlannerEntry cp_sat_planner() {
  return {{.name = "cp-sat",
           .description = "constraint programming over devices and starts, with a proven bound",
           .source = "CP-SAT of OR-Tools; the model is Heddle's own (docs/bounds.md)",
           .objectives = {Objective::kLatency, Objective::kColdLatency},
           .exploits = "unequal devices, devices that share cores, memory for parameters",
           .ignores = "contention and the loads' order, but for the local search before and after",
           .cold_start = true},
          plan_cp_sat};
}

}  // namespace heddle
