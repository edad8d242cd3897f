#include "module_planner.h"

#include "core/configurations.h"
#include "core/fastest_routes.h"
#include "core/portfolio.h"
#include "lists/construction.h"

namespace heddle {
namespace {

// Relative: sums of latencies differ by their order.
constexpr double kLatencyRounding = 1e-12;

// Whether the task model's optimum is a lower bound for every plan of the problem. The model lets transfers
// pass each other, ignores memory and uses the cluster's routes and the devices of its flat problem. Its
// optimum is no more than any plan's latency when
// - the objective is the latency of one request: of several, a plan may run two batches of one task on one
//   device, which equation 5 excludes;
// - the model has all usable devices;
// - no route is faster than the cluster's, for any size: it has both the least latency and the most
//   bandwidth of all paths of links;
// - an op takes no longer than in any segment that has it.
// Contention and memory limits only make plans slower.
bool bounds_every_plan(const TaskModel& model) {
  const FlatProblem& flat = model.flat();
  const Problem& problem = flat.problem();
  const size_t k = flat.num_devices();
  if (problem.objective != Objective::kLatency || model.num_requests() > 1 ||
      k != problem.usable_devices().size())
    return false;
  const auto least = problem.costs->bound_times();
  for (uint32_t v = 0; v < flat.num_ops(); ++v)
    for (uint32_t i = 0; i < k; ++i)
      if (flat.us(v, i) >
          least[v * problem.cluster->num_devices() + flat.device(i).index()] * (1 + kLatencyRounding))
        return false;
  return has_fastest_routes(flat);
}

}  // namespace

Result<PlannerOutput> plan_on_each_set(const Problem& problem, const PlannerOptions& options,
                                       const std::string& name, PlanStore& candidates,
                                       const PlanOnSet& plan) {
  const auto sets = configurations(problem);
  for (size_t s = 0; s < sets.size() && !options.deadline.cancelled(); ++s) {
    if (options.deadline.expired() && !candidates.empty()) break;
    const FlatProblem flat(problem, sets[s]);
    const double share = options.deadline.seconds_left() / static_cast<double>(sets.size() - s);
    HEDDLE_RETURN_IF_ERROR(plan(TaskModel(flat), options.deadline.sooner(share)));
    report_progress(options, "planner " + name, static_cast<double>(s + 1), static_cast<double>(sets.size()),
                    candidates.empty() ? std::nullopt : std::optional<double>(candidates.value_us()));
  }
  if (candidates.empty() && !options.deadline.cancelled()) {
    // These planners do not see memory limits: where nothing fits, the best constructive plan stands in.
    run_planners(problem, options, constructive_planners(problem.objective), candidates);
  }
  const bool late = options.deadline.should_stop();
  return candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

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
  const auto solve_model = [&](const TaskModel& model, const Deadline& deadline) -> Status {
    std::vector<Batch> start;
    double least = kImpossible;
    for (const Plan& plan : starts) {
      auto batches = to_batches(model, assignment_of(problem, plan));
      const double value = batches.empty() ? kImpossible : time_batches(model, batches).makespan;
      if (value < least) least = value, start = std::move(batches);
    }
    const SolveOptions limits{.deadline = deadline, .threads = options.threads, .seed = options.seed};
    HEDDLE_ASSIGN_OR_RETURN(const SplitResult result, solve(model, start, limits));
    if (!result.batches.empty()) candidates.offer(to_assignment(model, result.batches), name);
    counters["modules_solved"] += static_cast<double>(result.solved);
    counters["subproblems"] += static_cast<double>(result.subproblems);
    if (result.bound_us > 0 && result.bound_us < kImpossible && bounds_every_plan(model)) {
      candidates.prove({result.bound_us, {name, result.claimed_by}});
      // The model's optimum is the problem's when no transfer waits for another one.
      proven = result.optimal && !candidates.empty() && candidates.value_us() <= result.value_us * (1 + 1e-9);
    }
    return {};
  };
  HEDDLE_ASSIGN_OR_RETURN(PlannerOutput out,
                          plan_on_each_set(problem, options, name, candidates, solve_model));
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
                          return SplitResult{answer, 1, 1};
                        });
}

Result<PlannerOutput> plan_start(const Problem& problem, const PlannerOptions& options) {
  return plan_whole(
      problem, options, "start of the programs",
      [](const ModuleProblem& whole, const ModuleAnswer& start,
         const SolveOptions& limits) -> Result<ModuleAnswer> { return module_start(whole, start, limits); });
}

}  // namespace heddle
