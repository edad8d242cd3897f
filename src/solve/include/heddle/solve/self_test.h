// Whether the solvers of this machine load side by side and answer small models right.
#pragma once

#include <string>

#include "heddle/base/status.h"

namespace heddle {

struct SolverSelfTest {
  std::string version;  // "1.15.1"; CP-SAT: of OR-Tools, "9.15.6755"
  int models = 0;       // all answered right
};

// Each solves some dozens of small models, in well under a second, with the settings that Heddle uses, and
// compares with the answers found by trying all points: first one known model, then random ones of each
// ModelShape. kInternal when an answer is wrong: the message counts the wrong ones by shape and quotes the
// first. kUnsupported when the library cannot be loaded; the message names the solver, its version and a
// remedy. Thread-safe.
Result<SolverSelfTest> highs_self_test();
Result<SolverSelfTest> cp_sat_self_test();

}  // namespace heddle
