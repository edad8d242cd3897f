// Schedules of stages without search.
#pragma once

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "stage_instance.h"
#include "stage_schedule.h"

namespace heddle {

// The best of a few list schedules, each improved by sweeps (stage_list.cc). kInfeasible when some op can run
// nowhere beside what is placed already; kCancelled when the deadline was cancelled before there was one.
Result<StageSchedule> construct_stages(const StageInstance& instance, const Deadline& deadline);

}  // namespace heddle
