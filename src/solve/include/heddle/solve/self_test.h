// Proof that both solvers are there, load side by side and solve: run at start-up of whatever relies on them.
#pragma once

#include <string>

#include "heddle/base/status.h"

namespace heddle {

struct SolverSelfTest {
  std::string highs_version;  // "1.15.1"
  double highs_value = 0;     // objective found, which equals highs_expected
  double highs_expected = 0;
  std::string cp_sat_version;  // that of OR-Tools, "9.15.6755"
  double cp_sat_value = 0;
  double cp_sat_expected = 0;
  // Gurobi is optional: all empty where there is no gurobi_cl.
  std::string gurobi_program, gurobi_version;
  double gurobi_value = 0;   // the same model as HiGHS's
  std::string gurobi_error;  // why it does not solve it, e.g. for want of a licence
};

// Solves one small problem with each solver, in milliseconds, and compares with the optimum worked out by
// hand: HiGHS a two-variable MIP whose presolve release 1.14 gets wrong, CP-SAT three tasks on one machine.
// Fails (kInternal) when an answer is wrong and (kUnsupported) when a library cannot be loaded; the message
// names the solver, its version and what to do. A Gurobi that fails is told of in gurobi_error, and fails the
// test only where HEDDLE_MILP_SOLVER asks for it. Thread-safe.
Result<SolverSelfTest> solver_self_test();

// The halves of it: only the fields of the one solver are set.
Result<SolverSelfTest> highs_self_test();
Result<SolverSelfTest> cp_sat_self_test();
// Only Gurobi's fields, and its error in them.
SolverSelfTest gurobi_self_test();

}  // namespace heddle
