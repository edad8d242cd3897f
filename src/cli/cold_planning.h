// Cuts a model for cold starts, from what starts of it take here.
#pragma once

#include <string>

#include "cold_report.h"
#include "workbench.h"

namespace heddle::cli {

// Writes the plan. `segments`: as many, by weight; 0: starts of the whole model and of pieces are measured,
// some seconds, and the cut with the earliest predicted first output is taken (with a budget: by weight). All
// that touches the model is done in processes of their own.
Status plan_cold(const ModelFlags& model, const ProblemFlags& problem, int segments,
                 const ColdSettings& settings, const std::string& path, const Invocation& invocation);

}  // namespace heddle::cli
