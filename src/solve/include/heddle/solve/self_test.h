// Proof that both solvers load side by side and solve; run at start-up by programs that rely on them.
#pragma once

#include <string>

#include "heddle/base/status.h"

namespace heddle {

struct SolverSelfTest {
  std::string version;  // "1.15.1"; CP-SAT: of OR-Tools, "9.15.6755"
  double value = 0;     // objective found, equal to `expected`
  double expected = 0;
};

// Each solves one small problem, in milliseconds, and compares with the optimum found by hand. HiGHS: a
// two-variable MIP that the presolve of release 1.14 gets wrong; CP-SAT: three tasks on one machine.
// kInternal when the answer is wrong, kUnsupported when the library cannot be loaded; the message names the
// solver, its version and a remedy. Thread-safe.
Result<SolverSelfTest> highs_self_test();
Result<SolverSelfTest> cp_sat_self_test();

}  // namespace heddle
