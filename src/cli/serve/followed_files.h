// The served file with new content replaces what is served.
#pragma once

#include <string>

#include "heddle/serve/fleet_control.h"
#include "heddle/serve/infer_service.h"

namespace heddle::cli {

// These return at once; what came of it is logged. A file that cannot be served leaves the old plan in use.
void follow_plan(const std::string& path, const InferService& service, const std::string& model);
void follow_fleet(const std::string& path, FleetControl& control);

}  // namespace heddle::cli
