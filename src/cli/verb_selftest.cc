// heddle selftest: are the solvers there, and do they solve?
#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/solve/self_test.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

Result<int> run_selftest(const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto highs, highs_self_test());
  HEDDLE_ASSIGN_OR_RETURN(const auto cp_sat, cp_sat_self_test());
  if (invocation.json) {
    const Json j = {{"highs_version", highs.version},   {"highs_value", highs.value},
                    {"highs_expected", highs.expected}, {"cp_sat_version", cp_sat.version},
                    {"cp_sat_value", cp_sat.value},     {"cp_sat_expected", cp_sat.expected}};
    std::printf("%s\n", j.dump(1).c_str());
  } else {
    std::printf("HiGHS %s: %g, as expected\nCP-SAT %s: %g, as expected\n", highs.version.c_str(), highs.value,
                cp_sat.version.c_str(), cp_sat.value);
  }
  return kExitDone;
}

}  // namespace

RunFn setup_selftest(Command&) { return run_selftest; }

}  // namespace heddle::cli
