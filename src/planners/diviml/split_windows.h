// Modules with several channels: one after another, then windows of them again (DiviML, section IV-B2).
#pragma once

#include "module_problem.h"
#include "modules.h"
#include "split_chain.h"

namespace heddle {

// Solves the modules in order. Each sees when and where its inputs are ready and the devices are free, and,
// of what follows, the least rest of each task (paths that pay for moves). No proof of its own.
Result<SplitResult> split_in_order(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                                   const SolveOptions& limits);

// Improves a schedule: the tasks of two neighbouring modules are decided anew while all others keep device
// and order, which is exact for that choice: what comes before has fixed times, what comes after a fixed
// longest path. Passes over all pairs until one finds nothing or the deadline comes. Returns the number of
// windows solved.
Result<size_t> improve_windows(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                               const SolveOptions& limits, SplitResult& result);

}  // namespace heddle
