// CP-SAT through its C interface, loaded on first use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

// The OR-Tools release found by the build.
std::string cp_sat_version();

// Solves a serialised CpModelProto under serialised SatParameters and returns the serialised
// CpSolverResponse. The first call loads the library (its protobuf is kept apart from any other), which stays
// loaded because OR-Tools cannot be unloaded safely. kUnsupported when it cannot be loaded. Thread-safe.
Result<std::string> cp_sat_solve(std::string_view model, std::string_view parameters);

// The same on a separate thread, stopped soon after the deadline or a cancellation: the response then has the
// best solution so far. Another thread polls the deadline every few milliseconds. nullopt if the search does
// not stop within kSolverPatience (it does not poll while it presolves a large model); its thread is then
// abandoned and ends by itself.
Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline);

}  // namespace heddle
