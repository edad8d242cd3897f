// Requests by plans for few and for many free cores.
#pragma once

#include <vector>

#include "heddle/report/shown.h"
#include "heddle/session/adaptive.h"

namespace heddle {

Shown adaptive_shown(const std::vector<PreparedPlan>& plans, const AdaptiveRun& run);

}  // namespace heddle
