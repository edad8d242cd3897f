// heddle selftest: checks that the solvers are installed and solve correctly.
#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/solve/self_test.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<int> run_selftest(const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto highs, highs_self_test());
  HEDDLE_ASSIGN_OR_RETURN(const auto cp_sat, cp_sat_self_test());
  const Json json = {{"highs_version", highs.version},   {"highs_value", highs.value},
                     {"highs_expected", highs.expected}, {"cp_sat_version", cp_sat.version},
                     {"cp_sat_value", cp_sat.value},     {"cp_sat_expected", cp_sat.expected}};
  const std::string text = fmt::format("HiGHS {}: {:g}, as expected\nCP-SAT {}: {:g}, as expected\n",
                                       highs.version, highs.value, cp_sat.version, cp_sat.value);
  show_result(invocation, json, text);
  return kExitDone;
}

}  // namespace

RunFn setup_selftest(Command&) { return run_selftest; }

}  // namespace heddle::cli
