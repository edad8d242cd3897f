#include "heddle/solve/self_test.h"

namespace heddle {

Result<SolverSelfTest> solver_self_test() {
  HEDDLE_ASSIGN_OR_RETURN(SolverSelfTest result, highs_self_test());
  HEDDLE_ASSIGN_OR_RETURN(const SolverSelfTest cp_sat, cp_sat_self_test());
  result.cp_sat_version = cp_sat.cp_sat_version;
  result.cp_sat_value = cp_sat.cp_sat_value;
  result.cp_sat_expected = cp_sat.cp_sat_expected;
  return result;
}

}  // namespace heddle
