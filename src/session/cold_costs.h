// What a cold start may do in a session's problem: host access, resident and dropped parameters.
#pragma once

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/session/session.h"

namespace heddle {

// Measures units with their parameters read in place where that is asked for, the accelerator is here and the
// store does not know.
Status measure_host_access(Session& session, const ProblemSettings& settings, const Control& control);

// Puts what the settings allow into the problem, whose costs are known by now. Errors name the setting.
Status allow_cold_start(Problem& problem, const ProblemSettings& settings);

}  // namespace heddle
