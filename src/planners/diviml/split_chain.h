// MILP-SPLIT's dynamic program over the devices of the channels (DiviML, section IV-B1).
#pragma once

#include "module_problem.h"
#include "modules.h"

namespace heddle {

// Decisions for the whole model; bound and optimum are the model's (transfers never wait for each other,
// memory is unlimited).
struct SplitResult : ModuleAnswer {
  size_t solved = 0;       // modules given to the solver
  size_t subproblems = 0;  // of so many (module, device in, device out)
};

// For modules with single channels and one request. dp(t, v) = min over u of dp(t-1, u) + OPT(t, u, v), where
// OPT(t, u, v) is the time from the end of module t-1's last task on u to the end of module t's last on v,
// transfers included: the paper's recursion with com() inside OPT and its dummy node as the shared last task.
//
// Of the K^2 problems per module only those are solved that a best path can use: the recursion runs on
// bounds, the modules on its best path are solved, until the best path has no unsolved module; then no other
// choice of devices can be better. Equal modules (and equal roles of devices in them) are solved once.
//
// O(K^2 Q) per round; as many rounds as problems are solved. Stops at the deadline with what is there.
Result<SplitResult> split_chain(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                                const SolveOptions& limits);

}  // namespace heddle
