// CP-SAT on one request's schedule (cp_schedule.h), between two local searches.
//
// Minimises the makespan of the relaxation, starting from the best plan of a short local search; what CP-SAT
// finds is timed by the evaluator and improved once more, for contention and known segments are not in the
// model. Its bound is proven for the problem as it is. Deterministic for a seed and thread count unless the
// deadline stops it.
#include "plan_steps.h"

namespace heddle {
namespace {

// Of the time: the first search and the bounds; then of what is left CP-SAT with linear programs and without,
// which some schedules are solved faster without.
constexpr double kBefore = 0.25, kDestructive = 0.1, kCut = 0.1, kProgram = 0.15, kFirst = 0.37,
                 kSecond = 0.8;

PortfolioSteps cp_sat_steps(PlanSteps& steps, const PlannerOptions& options) {
  const auto search = [&](const Deadline& d) { steps.local_search(d, options.seed, options.threads); };
  const auto fits = [&] { return steps.fits_cp_sat(); };
  const auto unsolved = [&] { return steps.fits_cp_sat() && !steps.is_solved(); };
  return {
      {"local search", of_all(kBefore), {}, search},
      {"combinatorial bound",
       of_all(kDestructive),
       {},
       [&](const Deadline& d) { steps.combinatorial_bound(d); }},
      {"minimum cuts", of_all(kCut), {}, [&](const Deadline& d) { steps.cuts(d); }},
      {"linear program", of_all(kProgram), {}, [&](const Deadline& d) { steps.linear_program(d); }},
      {"CP-SAT", of_left(kFirst), fits, [&](const Deadline& d) { steps.cp_sat(d, options.threads, true); }},
      {"CP-SAT without linear programs", of_left(kSecond), unsolved,
       [&](const Deadline& d) { steps.cp_sat(d, options.threads, false); }},
      // What CP-SAT solved to the end leaves only contention and known segments to be searched.
      {"local search", of_left(1), {}, search},
  };
}

Result<PlannerOutput> plan_cp_sat(const Problem& problem, const PlannerOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto out, plan_by_steps("planner cp-sat", problem, options, [&](PlanSteps& steps) {
                            return cp_sat_steps(steps, options);
                          }));
  if (!out.counters.contains("cp_sat_complete")) out.detail += ", without CP-SAT (not needed, or too large)";
  return out;
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
