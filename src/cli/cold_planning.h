// Cuts a model for cold starts, from what starts of it take here.
#pragma once

#include <string>

#include "cold_report.h"
#include "workbench.h"

namespace heddle::cli {

struct ColdCutOutcome {
  // By the times that were measured while cuts were tried, no cut at borders of ops needs less than this
  // share of the chosen one's predicted time from the request's start; 0: nothing was tried.
  double least_share = 0;
  // Where products with larger constants are split (ImportOptions::split_bytes): as asked for, or because
  // that was tried and starts earlier; 0: nowhere.
  int64_t split_bytes = 0;
};

// The time to the first output that no cut goes below, where the plan is predicted so; 0: nothing was tried.
double cold_bound_us(const ColdCutOutcome& cut, const ColdReport& predicted);

// Writes the plan. `segments`: as many, by weight; 0: starts of the whole model and of pieces are measured,
// some seconds, and the cut with the earliest predicted first output is taken (with a budget: by weight).
// Where one op is more than a load worker's share, the same is tried with such ops split, unless `model` says
// where. All that touches the model is done in processes of their own.
Result<ColdCutOutcome> plan_cold(const ModelFlags& model, const ProblemFlags& problem, int segments,
                                 const ColdSettings& settings, const std::string& path,
                                 const Invocation& invocation);

}  // namespace heddle::cli
