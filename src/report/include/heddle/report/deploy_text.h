// The processes of a deployment.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/deploy/workloads.h"

namespace heddle {

// Ends with the notes, a line each.
std::string workloads_text(const Workloads& workloads);
Json workloads_json(const Workloads& workloads);

}  // namespace heddle
