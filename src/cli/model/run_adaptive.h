// heddle run --adapt: plans for few and for many free cores, between which the run changes.
#pragma once

#include <string>

#include "heddle/runtime/run.h"
#include "model_flags.h"

namespace heddle::cli {

struct AdaptiveJob {
  const PlanningFlags* planning = nullptr;
  std::string planner;
  RunOptions run;  // `repeats` requests
};

// Status 1 if the outputs of a plan differ from the unsplit model's.
Result<int> run_adaptive(const AdaptiveJob& job, const Invocation& invocation);

}  // namespace heddle::cli
