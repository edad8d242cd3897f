// Proof that both solvers load side by side and solve; run at start-up by programs that rely on them.
#pragma once

#include <string>

#include "heddle/base/status.h"

namespace heddle {

struct SolverSelfTest {
  std::string highs_version;  // "1.15.1"
  double highs_value = 0;     // objective found, equal to highs_expected
  double highs_expected = 0;
  std::string cp_sat_version;  // version of OR-Tools, "9.15.6755"
  double cp_sat_value = 0;
  double cp_sat_expected = 0;
  // Gurobi is optional: all empty if there is no gurobi_cl.
  std::string gurobi_program, gurobi_version;
  double gurobi_value = 0;   // the same model as HiGHS's
  std::string gurobi_error;  // why it failed, for example for lack of a licence
};

// Solves one small problem with each solver, in milliseconds, and compares with the optimum found by hand.
// HiGHS: a two-variable MIP that the presolve of release 1.14 gets wrong; CP-SAT: three tasks on one machine.
// kInternal when an answer is wrong, kUnsupported when a library cannot be loaded; the message names the
// solver, its version and a remedy. A failure of Gurobi goes to gurobi_error and fails the test only if
// HEDDLE_MILP_SOLVER selects it. Thread-safe.
Result<SolverSelfTest> solver_self_test();

// The parts of solver_self_test(): each sets only the fields of its solver.
Result<SolverSelfTest> highs_self_test();
Result<SolverSelfTest> cp_sat_self_test();
// Sets only Gurobi's fields, including gurobi_error.
SolverSelfTest gurobi_self_test();

}  // namespace heddle
