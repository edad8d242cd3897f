// DiviML's throughput program in the steady state, with its ways to break symmetry (section VI).
#pragma once

#include "heddle/planners/planner.h"

namespace heddle {

// Among equal devices some quantity ascends: all plans that differ by a permutation of equal devices are
// represented, few are searched.
enum class Symmetry {
  kNone,
  kBatches,  // parts of ops with a time of their own (the paper's "#batches"): distinct kinds of ops
  kTasks,    // executions
  kTime,     // time in use
};
const char* symmetry_name(Symmetry symmetry);

struct ThroughputOptions {
  int parts = 4;  // a request's op may be executed on another device in each of so many lanes (1: one lane)
  Symmetry symmetry = Symmetry::kTime;
};

// Objective: throughput. Also what the planner "diviml-throughput" runs, with one lane and with `parts`.
Result<PlannerOutput> plan_diviml_throughput(const Problem& problem, const PlannerOptions& options,
                                             const ThroughputOptions& throughput);

}  // namespace heddle
