// One request's schedule with stages as a constraint program for CP-SAT, on the relaxation of
// plan/relaxation.h: for small graphs, where it finds the optimum and proves it.
#pragma once

#include "heddle/plan/problem.h"
#include "heddle/plan/relaxation.h"
#include "heddle/plan/stage_list.h"
#include "search/schedule_model.h"

namespace heddle {

struct CpStages {
  std::vector<ListedStage> stages;  // the best found; not always allowed by the problem: build_plan() tells
  double bound_us = 0;              // no plan of the problem is below
  bool complete = false;            // the model was solved to the end
};

// Whether the model is of a size that CP-SAT gets anywhere with: pairs of ops x devices.
bool cp_stages_fit(const Problem& problem);

// Improves the plan `hint` in the relaxation: contention, memory, and the number of groups in a stage are
// left out, so what is found is the evaluator's affair; the bound holds for the problem as it is. Latency and
// cold latency. kUnsupported when CP-SAT cannot be loaded.
Result<CpStages> solve_cp_stages(const Problem& problem, const Relaxation& relaxation, const Plan& hint,
                                 CpScheduleOptions options);

}  // namespace heddle
