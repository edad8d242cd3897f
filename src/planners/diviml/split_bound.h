// The recursive lower bound of DiviML, section IV-B2, on modules with any number of channels.
#pragma once

#include "module_problem.h"
#include "modules.h"

namespace heddle {

// For one request; transfers are free to pass each other and memory is unlimited, as in module_problem.h.
//
// Let OPT(S) be the least makespan of the tasks S alone. For a task r, D(r) is r with all that depends on it,
// and S its part in r's own module. The task of S that ends last has no reader in S; all tasks of D(r) that
// depend on it start later. So
//     F(r) = OPT(S) + min over the sinks s of S of max over edges s -> r' into later modules of F(r')
// (0 where s has no such edge) bounds the makespan of D(r). B(r), with predecessors, likewise. In any
// schedule the task of module t that starts first is a source of it and waits for all its predecessors, and
// the one that ends last is a sink, hence
//     makespan >= min over sources of max B  +  OPT(M_t)  +  min over sinks of max F    for every t.
// The paper's inequalities are those of the first and the last module. It takes the minimum over the channels
// alone, which is a bound only where every sink of a module has a channel, as in its sdep networks; a sink
// without one counts as 0 here, so that this is a bound for every network.
//
// OPT(S) is what the solver proves within the time; it may stop anywhere. Solves at most one S per task that
// has a neighbour in another module and direction, and one per module.
struct SplitBound {
  double us = 0;
  std::string claimed_by;  // the solver that vouches for it; empty: it is proven
};
Result<SplitBound> split_bound(const TaskModel& model, const Modules& modules, const ModuleSolver& solver,
                               const SolveOptions& limits);

}  // namespace heddle
