// A plan's cold starts beside their prediction.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/plan/plan_file.h"
#include "heddle/session/cold_start.h"

namespace heddle {

// `bound_us`: cold_bound_us().
std::string cold_text(const PlanFile& file, const ColdReport& report, const ColdSettings& settings,
                      double bound_us);
Json cold_json(const PlanFile& file, const ColdReport& report, const ColdSettings& settings, double bound_us);

}  // namespace heddle
