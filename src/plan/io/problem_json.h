// JSON of problems inside plan files. Private to plan_file.
#pragma once

#include "heddle/base/json_fwd.h"
#include "heddle/plan/problem.h"

namespace heddle {

Json problem_to_json(const Problem& problem);
Result<Problem> problem_from_json(const JsonCursor& cursor);
// Finds a device by name.
Result<DeviceId> device_from_json(const Cluster& cluster, const JsonCursor& cursor);

}  // namespace heddle
