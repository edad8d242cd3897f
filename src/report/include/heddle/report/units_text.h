// The times of a session's units on each device, and the origin of each.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/session/session.h"

namespace heddle {

// A line for each unit and one for the whole model as one segment.
std::string units_text(const Session& session);
// With the times of units that read their parameters in place, where there are any.
Json units_json(const Session& session);
// Times with parameters in place, and their ratio to those with parameters on the device.
std::string host_access_text(const Session& session);

}  // namespace heddle
