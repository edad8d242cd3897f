// What planners with a model of their own refuse, as they would give wrong times or bounds.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heddle/plan/problem.h"

namespace heddle {

// An error that names the planner and what it cannot compute with.
Error not_modelled(std::string_view planner, const std::string& what);

// An error if the problem has what none of them counts: parameters that several ops share, `devices` that share limited
// memory, or known times of segments of several ops.
Status check_modelled(const Problem& problem, std::span<const DeviceId> devices, std::string_view planner);

}  // namespace heddle
