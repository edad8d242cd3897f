// A schedule of stages and its timing.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/status.h"
#include "stage_instance.h"

namespace heddle {

using Stage = std::vector<uint32_t>;  // ops that run at once

struct StageSchedule {
  std::vector<std::vector<Stage>> devices;  // per device, its stages in order
};

struct StageTiming {
  std::vector<double> start_us, end_us;  // per op: of its stage
  double makespan_us = 0;
};

// Times the schedule, which has every op once, from nothing: one pass of Kahn's algorithm over the stages.
// kInvalidInput when an op cannot run on its device or be reached; kInfeasible when stages wait for each
// other. O(ops + edges).
Result<StageTiming> time_stages(const StageInstance& instance, const StageSchedule& schedule);

}  // namespace heddle
