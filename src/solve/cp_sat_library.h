// CP-SAT through its C interface, loaded on first use.
#pragma once

#include <optional>
#include <string>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"

namespace heddle {

// Solves a serialised CpModelProto under serialised SatParameters and returns the serialised
// CpSolverResponse. The first call loads the library (in a namespace of its own), which stays
// loaded because OR-Tools cannot be unloaded safely. kUnsupported when it cannot be loaded. Thread-safe.
//
// The search runs on a separate thread and is stopped soon after the deadline or a cancellation: the response
// then has the best solution so far. Another thread polls the deadline every few milliseconds. nullopt if the
// search does not stop within kSolverPatience (it does not poll while it presolves a large model); its thread
// is then abandoned and ends by itself.
Result<std::optional<std::string>> cp_sat_solve(std::string model, std::string parameters,
                                                const Deadline& deadline);

}  // namespace heddle
