// What the planners that solve modules share: devices, starts, bounds.
#pragma once

#include <functional>

#include "core/plan_store.h"
#include "module_clock.h"
#include "split_chain.h"

namespace heddle {

// What `plan` offers on each set of devices that do not share cores, each with an equal part of the time that
// is left; where that is nothing, the best constructive plan. The whole planner after its starts.
using PlanOnSet = std::function<Status(const TaskModel& model, const Deadline& deadline)>;
Result<PlannerOutput> plan_on_each_set(const Problem& problem, const PlannerOptions& options,
                                       const std::string& name, PlanStore& candidates, const PlanOnSet& plan);

// Decisions and bound for one task model; `start` is the best schedule known (may be empty).
using ModelSolve = std::function<Result<SplitResult>(const TaskModel& model, const std::vector<Batch>& start,
                                                     const SolveOptions& limits)>;

// Offers the constructive planners' plans (or options.start), then what `solve` finds for each set of devices
// that do not share cores; the bound is kept where it bounds every plan of the problem.
Result<PlannerOutput> plan_by_models(const Problem& problem, const PlannerOptions& options,
                                     const std::string& name, const ModelSolve& solve);

// The same with the whole graph as one module.
Result<PlannerOutput> plan_whole(const Problem& problem, const PlannerOptions& options,
                                 const std::string& name, const ModuleSolver& solver);

// What the planners that solve the whole graph begin with (module_start(), with the same seed and part of the
// time), as a plan.
Result<PlannerOutput> plan_start(const Problem& problem, const PlannerOptions& options);

}  // namespace heddle
