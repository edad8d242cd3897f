// Stage CP: CP-SAT on mapping, order and stages at once (cp_stages.h), begun with what stage-search finds in
// a part of the time; then the stages that it found are timed by the evaluator.
//
// Minimises the makespan of one request. For small graphs: where CP-SAT comes to an end the bound is the
// optimum of the relaxation, and mostly the plan's. Exploits stages, unequal devices, transfer times and
// cores that devices share; its model ignores contention, memory limits and groups of a stage beyond its
// width. Deterministic for a seed on one thread unless the deadline stops it.
#include <algorithm>

#include "core/plan_store.h"
#include "cp_stages.h"
#include "heddle/solve/solution.h"

namespace heddle {
namespace {

// Of the time given.
constexpr double kSearchShare = 0.3, kRelaxShare = 0.1;

// CP-SAT from the best plan on. `remark`: why there is no answer of it.
Status prove_stages(const Problem& problem, const PlannerOptions& options, PlanStore& candidates,
                    bool& complete, std::string& remark) {
  if (!cp_stages_fit(problem)) {
    remark = ", without CP-SAT (the graph is too large for it)";
    return {};
  }
  const double relax_seconds = kRelaxShare * options.deadline.seconds_left();
  const Relaxation relaxation = relax(problem, options.deadline.sooner(relax_seconds));
  CpScheduleOptions cp{.deadline = options.deadline, .threads = options.threads, .seed = options.seed};
  if (options.progress != nullptr) {
    cp.on_progress = [&](double bound_us) {
      options.progress->report({.what = "stage-cp",
                                .done = 0,
                                .total = 0,
                                .best_us = candidates.value_us(),
                                .bound_us = std::max(candidates.bound().us, bound_us)});
    };
  }
  const auto result = solve_cp_stages(problem, relaxation, *candidates.best(), cp);
  if (!result.ok() && result.error().code() == Code::kUnsupported) {
    remark = ", without CP-SAT (it cannot be loaded)";
    return {};
  }
  if (!result.ok()) return result.error();
  candidates.offer(assignment_of_stages(problem.graph->num_ops(), result->stages), "stage-cp");
  complete = result->complete;
  candidates.prove(
      {result->bound_us,
       {complete ? "constraint program with stages, solved to the end" : "constraint program with stages",
        cp_sat_name()}});
  return {};
}

Result<PlannerOutput> plan_stage_cp(const Problem& problem, const PlannerOptions& options) {
  PlannerOptions part = options;
  part.deadline = options.deadline.sooner(kSearchShare * options.deadline.seconds_left());
  HEDDLE_ASSIGN_OR_RETURN(PlannerOutput found, find_planner("stage-search")->plan(problem, part));
  PlanStore candidates(problem);
  candidates.offer(found.plan, found.detail);
  if (found.bound) candidates.prove(*found.bound);
  std::string remark;
  bool complete = !candidates.is_open();
  if (!complete && !options.deadline.should_stop())
    HEDDLE_RETURN_IF_ERROR(prove_stages(problem, options, candidates, complete, remark));
  StopReason stop = complete ? StopReason::kFinished : StopReason::kTimeLimit;
  if (!candidates.is_open()) stop = StopReason::kOptimal;
  if (!remark.empty()) stop = found.stop;
  HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(stop, options.deadline));
  out.detail += remark;
  out.counters = found.counters;
  out.counters["cp_sat_complete"] = complete ? 1 : 0;
  return out;
}

}  // namespace

PlannerEntry stage_cp_planner() {
  return {{.name = "stage-cp",
           .description = "stage-search, then CP-SAT on mapping, order and stages; optimal on small graphs",
           .source = "docs/stages.md; docs/bounds.md, section 16",
           .objectives = {Objective::kLatency},
           .exploits = "stages, transfer times, unequal devices, shared cores",
           .ignores = "contention, memory limits",
           .stages = true},
          plan_stage_cp};
}

}  // namespace heddle
