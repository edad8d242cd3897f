// Simulated annealing over devices and order together: where DiviML's "sa" (annealing.cc) tries devices for
// one order of tasks, this one also moves tasks in the order, moves all requests of a task at once, or lets a
// request go along with another one for some tasks, so that batches stay together (module_search.cc).
//
// Minimises the latency of one request, or of a batch. From the best constructive plan or the plan given, one
// cooling over the time. A move is timed from the first change on and given up as soon as it cannot be
// accepted: O(V + E) at worst. Exploits unequal devices, transfer times and batches; ignores contention and
// memory limits, for which it falls back to the best constructive plan.
#include "module_planner.h"

namespace heddle {
namespace {

// Per task and request: more than any time allows; without a deadline so many.
constexpr size_t kMoves = 1'000'000, kUntimedMoves = 3000;

Result<ModuleAnswer> anneal(const ModuleProblem& whole, const ModuleAnswer& start,
                            const SolveOptions& limits) {
  const bool timed = limits.deadline.seconds_left() < kImpossible;
  return module_start(whole, start, limits, 1, timed ? kMoves : kUntimedMoves);
}

Result<PlannerOutput> plan_schedule_sa(const Problem& problem, const PlannerOptions& options) {
  return plan_whole(problem, options, "schedule-sa", anneal);
}

}  // namespace

PlannerEntry schedule_sa_planner() {
  return {{.name = "schedule-sa",
           .description = "simulated annealing of devices and order together, batches kept together",
           .source = "Heddle; after DiviML, section V-A (SA)",
           .objectives = {Objective::kLatency},
           .exploits = "unequal devices, transfer times, batches of requests",
           .ignores = "contention, memory limits"},
          plan_schedule_sa};
}

}  // namespace heddle
