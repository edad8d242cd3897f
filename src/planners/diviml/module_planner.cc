#include "module_planner.h"

#include "core/configurations.h"
#include "core/portfolio.h"
#include "lists/construction.h"
#include "relaxation.h"

namespace heddle {

Result<PlannerOutput> plan_by_models(const Problem& problem, const PlannerOptions& options,
                                     const std::string& name, const ModelSolve& solve) {
  PlanStore candidates(problem);
  std::vector<Plan> starts;
  if (options.start != nullptr && candidates.offer(*options.start, "the plan to improve"))
    starts.push_back(*options.start);
  for (auto& plan : run_planners(problem, options, constructive_planners(problem.objective), candidates))
    starts.push_back(std::move(plan));
  bool proven = false;
  std::map<std::string, double> counters;
  const auto sets = configurations(problem);
  for (size_t s = 0; s < sets.size() && !options.deadline.should_stop(); ++s) {
    const FlatProblem flat(problem, sets[s]);
    const TaskModel model(flat);
    std::vector<Batch> start;
    double least = kImpossible;
    for (const Plan& plan : starts) {
      auto batches = to_batches(model, assignment_of(problem, plan));
      const double value = batches.empty() ? kImpossible : time_batches(model, batches).makespan;
      if (value < least) least = value, start = std::move(batches);
    }
    SolveOptions limits;
    limits.seed = options.seed;
    limits.threads = options.threads;
    limits.deadline =
        options.deadline.sooner(options.deadline.seconds_left() / static_cast<double>(sets.size() - s));
    HEDDLE_ASSIGN_OR_RETURN(const SplitResult result, solve(model, start, limits));
    if (!result.batches.empty()) candidates.offer(to_assignment(model, result.batches), name);
    counters["modules_solved"] += static_cast<double>(result.solved);
    counters["subproblems"] += static_cast<double>(result.subproblems);
    if (result.bound_us > 0 && result.bound_us < kImpossible && bounds_every_plan(model)) {
      candidates.prove({result.bound_us, name});
      // The model's optimum is the problem's when no transfer waits for another one.
      proven = result.optimal && !candidates.empty() && candidates.value_us() <= result.value_us * (1 + 1e-9);
    }
    report_progress(options, "planner " + name, static_cast<double>(s + 1), static_cast<double>(sets.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  }
  const bool late = options.deadline.should_stop();
  HEDDLE_ASSIGN_OR_RETURN(
      PlannerOutput out,
      candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline));
  if (proven) out.stop = StopReason::kOptimal;
  out.counters.merge(counters);
  return out;
}

Result<PlannerOutput> plan_whole(const Problem& problem, const PlannerOptions& options,
                                 const std::string& name, const ModuleSolver& solver) {
  return plan_by_models(problem, options, name,
                        [&](const TaskModel& model, const std::vector<Batch>& start,
                            const SolveOptions& limits) -> Result<SplitResult> {
                          const ModuleProblem whole = whole_problem(model);
                          ModuleAnswer first;
                          if (!start.empty())
                            first.batches = start, first.value_us = module_value(whole, start);
                          HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver(whole, first, limits));
                          return SplitResult{
                              answer.batches, answer.value_us, answer.bound_us, answer.optimal, 1, 1};
                        });
}

Result<PlannerOutput> plan_start(const Problem& problem, const PlannerOptions& options) {
  return plan_whole(
      problem, options, "start of the programs",
      [](const ModuleProblem& whole, const ModuleAnswer& start,
         const SolveOptions& limits) -> Result<ModuleAnswer> { return module_start(whole, start, limits); });
}

}  // namespace heddle
