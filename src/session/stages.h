// Stages in a session's problem: how many segments a device may run at once, and what that takes.
#pragma once

#include "heddle/base/control.h"
#include "heddle/session/session.h"

namespace heddle {

// Lets devices run up to settings.stage_width segments at once, by settings.stage_times.
Status allow_stages(Session& session, const ProblemSettings& settings, const Control& control);

// The same stages on another cluster: devices of the same name keep their stage model and utilizations.
void keep_stages(const Problem& from, Problem& to);

}  // namespace heddle
