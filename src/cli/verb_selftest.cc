// heddle selftest: checks that the solvers are installed and solve correctly.
#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/solve/self_test.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<int> run_selftest(const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto test, solver_self_test());
  Json json = {{"highs_version", test.highs_version},   {"highs_value", test.highs_value},
               {"highs_expected", test.highs_expected}, {"cp_sat_version", test.cp_sat_version},
               {"cp_sat_value", test.cp_sat_value},     {"cp_sat_expected", test.cp_sat_expected}};
  std::string text =
      fmt::format("HiGHS {}: {:g}, as expected\nCP-SAT {}: {:g}, as expected\n", test.highs_version,
                  test.highs_value, test.cp_sat_version, test.cp_sat_value);
  if (!test.gurobi_program.empty()) {
    json["gurobi_program"] = test.gurobi_program;
    json["gurobi_version"] = test.gurobi_version;
    json["gurobi_value"] = test.gurobi_error.empty() ? Json(test.gurobi_value) : Json();
    json["gurobi_error"] = test.gurobi_error;
    text +=
        fmt::format("{} ({}): {}\n", test.gurobi_version.empty() ? "Gurobi" : test.gurobi_version,
                    test.gurobi_program, test.gurobi_error.empty() ? "9, as expected" : test.gurobi_error);
  }
  show_result(invocation, json, text);
  return kExitDone;
}

}  // namespace

RunFn setup_selftest(Command&) { return run_selftest; }

}  // namespace heddle::cli
