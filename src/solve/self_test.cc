#include "heddle/solve/self_test.h"

#include "gurobi.h"

namespace heddle {

Result<SolverSelfTest> solver_self_test() {
  HEDDLE_ASSIGN_OR_RETURN(SolverSelfTest result, highs_self_test());
  HEDDLE_ASSIGN_OR_RETURN(const SolverSelfTest cp_sat, cp_sat_self_test());
  result.cp_sat_version = cp_sat.cp_sat_version;
  result.cp_sat_value = cp_sat.cp_sat_value;
  result.cp_sat_expected = cp_sat.cp_sat_expected;
  const SolverSelfTest gurobi = gurobi_self_test();
  result.gurobi_program = gurobi.gurobi_program;
  result.gurobi_version = gurobi.gurobi_version;
  result.gurobi_value = gurobi.gurobi_value;
  result.gurobi_error = gurobi.gurobi_error;
  HEDDLE_ASSIGN_OR_RETURN(const auto asked, gurobi_to_use());
  if (asked && !result.gurobi_error.empty())
    return Error(Code::kInternal, result.gurobi_error).with_context("self-test of Gurobi");
  return result;
}

}  // namespace heddle
