// CP-SAT behind its C interface, loaded on first use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

// The release of OR-Tools that the build found.
std::string cp_sat_version();

// Solves a serialised CpModelProto under serialised SatParameters and returns the serialised
// CpSolverResponse. Loads the library on the first call (its own protobuf stays apart from any other in the
// process) and keeps it: OR-Tools cannot be unloaded safely. kUnsupported when it cannot be loaded.
// Thread-safe.
Result<std::string> cp_sat_solve(std::string_view model, std::string_view parameters);

// The same on a thread of its own, stopped soon after the deadline passes or is cancelled: the best so far is
// in the response. A further thread looks at the deadline every few milliseconds. A search that does not stop
// within kSolverPatience (it asks nobody while it simplifies a large model) is left behind to end by itself:
// nullopt.
Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline);

}  // namespace heddle
