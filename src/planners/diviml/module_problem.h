// A part of a schedule to be made: some tasks, what reaches them from outside and what follows them.
#pragma once

#include <functional>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/solve/solution.h"
#include "task_model.h"

namespace heddle {

struct ModuleProblem {
  // Data of one request from a task outside.
  struct Source {
    uint32_t task = 0;  // that reads it
    uint32_t request = 0;
    uint32_t device = 0;  // where it is
    double at_us = 0;     // when it is there
    int64_t bytes = 0;
  };
  TaskModel model;  // the module's tasks alone
  std::vector<Source> sources;
  std::vector<double> free_us;  // per device: when it is free; empty: at 0
  std::vector<int32_t> fixed;   // per task: the device of all its requests, or -1; empty: none
  // What follows: (task, request, device) from the end of that task to the end of everything; per device,
  // from its last task's end to the end of everything. Empty: nothing follows.
  std::vector<double> tail_us, device_tail_us;

  double tail(size_t task, size_t request, size_t device) const {
    const size_t k = model.num_devices();
    const double own = tail_us.empty() ? 0 : tail_us[(task * model.num_requests() + request) * k + device];
    return std::max(own, device_tail_us.empty() ? 0 : device_tail_us[device]);
  }
  double free_at(size_t device) const { return free_us.empty() ? 0 : free_us[device]; }
  bool allows(size_t task, size_t device) const {
    return fixed.empty() || fixed[task] < 0 || static_cast<size_t>(fixed[task]) == device;
  }
  bool possible(size_t task, size_t device) const {
    return allows(task, device) && model.us(task, device, 1) < kImpossible;
  }
  // Per task; they point into this problem.
  std::vector<std::vector<const Source*>> sources_by_task() const;
};

// The decisions for a module's tasks and their value: the end of everything, by module_value().
struct ModuleAnswer {
  std::vector<Batch> batches;  // in the order of starts; empty: none was found
  double value_us = kImpossible;
  double bound_us = 0;     // no decisions have a smaller value
  std::string claimed_by;  // the solver that vouches for the bound; empty: it is proven
  bool optimal = false;
};

// The end of everything when the batches run in this order: starts as in time_batches(), tails added.
double module_value(const ModuleProblem& module, const std::vector<Batch>& batches,
                    std::vector<double>* starts = nullptr);

// Batches of all requests of each task, by falling least rest, each on the device where what follows ends
// first; infinite value when some task fits nowhere. O((V + E) k + V log V).
ModuleAnswer module_by_list(const ModuleProblem& module);

// A value that no decisions can be below: paths that pay for moves, and the area of each device set. Cheap:
// O(E k^2).
double module_bound(const ModuleProblem& module);

// Earliest start of any request of each task on each device, and the least time from there to the end of
// everything, over all devices of what comes before and after: task x device, infinite where impossible.
struct ModulePaths {
  std::vector<double> head, rest;
};
ModulePaths module_paths(const ModuleProblem& module);
// The least time from the end of a task on the device over a transfer to a reader that has these rests.
double least_rest(const TaskModel& model, size_t device, int64_t bytes, const double* rests);

// The best of `start`, the list schedule and an annealing from it (so many moves per task and request, at
// most this share of the time), with the cheap bound: what solvers begin with.
ModuleAnswer module_start(const ModuleProblem& module, const ModuleAnswer& start, const SolveOptions& limits,
                          double share = 0.3, size_t moves_per_gene = 1000);

// Solves a module from `start` (may be empty) on. An error only when the solver fails.
using ModuleSolver =
    std::function<Result<ModuleAnswer>(const ModuleProblem&, const ModuleAnswer& start, const SolveOptions&)>;

// DiviML's equations 1 to 7, by HiGHS.
Result<ModuleAnswer> solve_module_by_milp(const ModuleProblem& module, const ModuleAnswer& start,
                                          const SolveOptions& limits);
// The same decisions as optional intervals, by CP-SAT; by HiGHS where CP-SAT cannot be loaded.
Result<ModuleAnswer> solve_module_by_cp(const ModuleProblem& module, const ModuleAnswer& start,
                                        const SolveOptions& limits);

// A solver whose program has model(), start_from() and read(), and says in us what a bound of it is.
template <class Program>
Result<ModuleAnswer> solve_module(const ModuleProblem& module, const ModuleAnswer& start,
                                  const SolveOptions& limits) {
  ModuleAnswer answer = module_start(module, start, limits);
  // Without a start there is no scale of times.
  if (!(answer.value_us < kImpossible) || answer.optimal || limits.deadline.should_stop()) return answer;
  Program program(module, answer.value_us);
  std::vector<double> starts;
  module_value(module, answer.batches, &starts);
  program.start_from(answer, starts);
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(program.model(), limits));
  if (solution.has_values()) {
    auto found = program.read(solution.values);
    const double value = module_value(module, found);
    if (value < answer.value_us) answer.value_us = value, answer.batches = std::move(found);
  }
  // The start satisfies the program: a solver that calls it infeasible has lost its way, and so its bound.
  if (solution.status == SolveStatus::kInfeasible) return answer;
  const double bound_us = program.bound_us(solution.bound);
  if (bound_us > answer.bound_us) answer.bound_us = bound_us, answer.claimed_by = solution.solver;
  answer.bound_us = std::min(answer.bound_us, answer.value_us);
  answer.optimal = solution.status == SolveStatus::kOptimal;
  return answer;
}

}  // namespace heddle
