// Cuts a model for cold starts, from what starts of it take here.
#pragma once

#include <string>

#include "cold_report.h"
#include "workbench.h"

namespace heddle::cli {

struct ColdCutOutcome {
  // No cut at borders of ops gives its first output before this, by what was measured while cuts were tried;
  // 0: nothing was tried.
  double bound_us = 0;
};

// Writes the plan. `segments`: as many, by weight; 0: starts of the whole model and of pieces are measured,
// some seconds, and the cut with the earliest predicted first output is taken (with a budget: by weight). All
// that touches the model is done in processes of their own.
Result<ColdCutOutcome> plan_cold(const ModelFlags& model, const ProblemFlags& problem, int segments,
                                 const ColdSettings& settings, const std::string& path,
                                 const Invocation& invocation);

}  // namespace heddle::cli
