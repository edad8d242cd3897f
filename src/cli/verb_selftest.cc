// heddle selftest: are the solvers there, and do they solve?
#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/solve/self_test.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<int> run_selftest(const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto test, solver_self_test());
  if (invocation.json) {
    Json j = {{"highs_version", test.highs_version},   {"highs_value", test.highs_value},
              {"highs_expected", test.highs_expected}, {"cp_sat_version", test.cp_sat_version},
              {"cp_sat_value", test.cp_sat_value},     {"cp_sat_expected", test.cp_sat_expected}};
    if (!test.gurobi_program.empty()) {
      j["gurobi_program"] = test.gurobi_program;
      j["gurobi_version"] = test.gurobi_version;
      j["gurobi_value"] = test.gurobi_error.empty() ? Json(test.gurobi_value) : Json();
      j["gurobi_error"] = test.gurobi_error;
    }
    std::printf("%s\n", j.dump(1).c_str());
  } else {
    std::printf("HiGHS %s: %g, as expected\nCP-SAT %s: %g, as expected\n", test.highs_version.c_str(),
                test.highs_value, test.cp_sat_version.c_str(), test.cp_sat_value);
    if (!test.gurobi_program.empty()) {
      std::printf("%s (%s): %s\n", test.gurobi_version.empty() ? "Gurobi" : test.gurobi_version.c_str(),
                  test.gurobi_program.c_str(),
                  test.gurobi_error.empty() ? "9, as expected" : test.gurobi_error.c_str());
    }
  }
  return kExitDone;
}

}  // namespace

RunFn setup_selftest(Command&) { return run_selftest; }

}  // namespace heddle::cli
