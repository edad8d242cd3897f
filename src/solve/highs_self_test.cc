#include <interfaces/highs_c_api.h>

#include <cmath>
#include <memory>

#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

constexpr double kHighsTolerance = 1e-6;

struct TestDeleter {
  void operator()(void* highs) const { Highs_destroy(highs); }
};

// minimise 2x + 3z subject to x + z >= 4.5, 0 <= x <= 10, 0 <= z <= 10 and integer.
// x costs less per unit of the constraint and may be fractional, so the optimum is x = 4.5, z = 0 with value
// 9. HiGHS 1.14's presolve fixes z first and returns 15 (github.com/lovasoa/highs-js/issues/53); fixed in
// 1.15.
bool pass_model(void* highs) {
  constexpr double kInfinity = 1e30;  // HiGHS treats 1e20 and more as infinite
  const double cost[] = {2, 3};
  const double lower[] = {0, 0};
  const double upper[] = {10, 10};
  const double row_lower[] = {4.5};
  const double row_upper[] = {kInfinity};
  const HighsInt starts[] = {0};
  const HighsInt columns[] = {0, 1};
  const double values[] = {1, 1};
  const HighsInt integrality[] = {kHighsVarTypeContinuous, kHighsVarTypeInteger};
  return Highs_passMip(highs, 2, 1, 2, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0, cost, lower,
                       upper, row_lower, row_upper, starts, columns, values, integrality) == kHighsStatusOk;
}

}  // namespace

Result<SolverSelfTest> highs_self_test() {
  SolverSelfTest result;
  result.highs_version = Highs_version();
  result.highs_expected = 9;
  const auto failed = [&](const std::string& what) {
    return Error(Code::kInternal,
                 what + "; run `make setup` for the release of highsbox that Heddle is tested with")
        .with_context("self-test of HiGHS " + result.highs_version);
  };
  const std::unique_ptr<void, TestDeleter> highs(Highs_create());
  if (highs == nullptr) return failed("cannot create a solver");
  Highs_setBoolOptionValue(highs.get(), "output_flag", 0);
  // The default starts a thread pool, which does not pay off here.
  Highs_setStringOptionValue(highs.get(), "parallel", "off");
  if (!pass_model(highs.get())) return failed("the model was refused");
  if (Highs_run(highs.get()) != kHighsStatusOk) return failed("the solver gave up");
  if (Highs_getModelStatus(highs.get()) != kHighsModelStatusOptimal) return failed("no optimum was found");
  result.highs_value = Highs_getObjectiveValue(highs.get());
  if (!(std::fabs(result.highs_value - result.highs_expected) <= kHighsTolerance)) {
    return failed("the optimum is 9 but it answered " + std::to_string(result.highs_value));
  }
  return result;
}

}  // namespace heddle
