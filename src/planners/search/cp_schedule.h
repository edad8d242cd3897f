// One request's schedule as a constraint program for CP-SAT, on the relaxation of plan/relaxation.h.
#pragma once

#include "core/flat_problem.h"
#include "heddle/plan/relaxation.h"
#include "schedule_model.h"

namespace heddle {

struct CpSchedule {
  FlatPlan plan;          // the best found; the hint when nothing better was
  double bound_us = 0;    // no plan of the problem is below
  bool complete = false;  // the model was solved to the end
};

// Whether the model is of a size that CP-SAT gets anywhere with: ops x devices and reads x device pairs.
bool cp_schedule_fits(const FlatProblem& flat);

// Improves `hint` in the relaxation (contention and activations' memory left out, times bound_times()), so
// the plan's true time is the evaluator's affair; the bound holds for the problem as it is. `flat` must cover
// the relaxation's devices. Latency and cold latency. kUnsupported when CP-SAT cannot be loaded.
Result<CpSchedule> solve_cp_schedule(const FlatProblem& flat, const Relaxation& relaxation,
                                     const FlatPlan& hint, const CpScheduleOptions& options);

}  // namespace heddle
