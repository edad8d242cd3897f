// The functions of HiGHS's C interface that Heddle calls, as release 1.15 documents them: the wheel highspy has the
// library and no header. All return a kHighsStatus unless said otherwise; HighsInt is an int in the wheel.
#pragma once

#include <cstdint>

extern "C" {

using HighsInt = int;

// The first members of what HiGHS passes to a callback; it has more, and Heddle never makes one.
struct HighsCallbackDataOut {
  void* data;
  int log_type;
  double running_time;
  HighsInt simplex_iterations, ipm_iterations, pdlp_iterations;
  double objective;
  int64_t mip_nodes, mip_lp_iterations;
  double mip_primal_bound, mip_dual_bound, mip_gap;
  double* mip_solution;
  HighsInt mip_solution_size;
};
// The first member of what a callback answers.
struct HighsCallbackDataIn {
  int user_interrupt;
};
using HighsCallback = void (*)(int type, const char* message, const HighsCallbackDataOut* out,
                               HighsCallbackDataIn* in, void* user);

const char* Highs_version();
void* Highs_create();
void Highs_destroy(void* highs);
HighsInt Highs_setBoolOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setIntOptionValue(void* highs, const char* option, HighsInt value);
HighsInt Highs_setDoubleOptionValue(void* highs, const char* option, double value);
HighsInt Highs_setStringOptionValue(void* highs, const char* option, const char* value);
HighsInt Highs_readModel(void* highs, const char* file);
HighsInt Highs_passLp(void* highs, HighsInt columns, HighsInt rows, HighsInt entries, HighsInt format,
                      HighsInt sense, double offset, const double* cost, const double* lower,
                      const double* upper, const double* row_lower, const double* row_upper,
                      const HighsInt* starts, const HighsInt* indices, const double* values);
HighsInt Highs_passMip(void* highs, HighsInt columns, HighsInt rows, HighsInt entries, HighsInt format,
                       HighsInt sense, double offset, const double* cost, const double* lower,
                       const double* upper, const double* row_lower, const double* row_upper,
                       const HighsInt* starts, const HighsInt* indices, const double* values,
                       const HighsInt* integrality);
HighsInt Highs_setSolution(void* highs, const double* columns, const double* rows, const double* column_duals,
                           const double* row_duals);
HighsInt Highs_setCallback(void* highs, HighsCallback callback, void* user);
HighsInt Highs_startCallback(void* highs, HighsInt type);
HighsInt Highs_run(void* highs);
HighsInt Highs_getModelStatus(const void* highs);  // returns a kHighsModelStatus
double Highs_getObjectiveValue(const void* highs);
HighsInt Highs_getIntInfoValue(const void* highs, const char* name, HighsInt* value);
HighsInt Highs_getInt64InfoValue(const void* highs, const char* name, int64_t* value);
HighsInt Highs_getDoubleInfoValue(const void* highs, const char* name, double* value);
// Null: not wanted.
HighsInt Highs_getSolution(const void* highs, double* columns, double* column_duals, double* rows,
                           double* row_duals);
void Highs_resetGlobalScheduler(HighsInt blocking);

}  // extern "C"

constexpr HighsInt kHighsStatusError = -1, kHighsStatusOk = 0;
constexpr HighsInt kHighsVarTypeContinuous = 0, kHighsVarTypeInteger = 1;
constexpr HighsInt kHighsObjSenseMinimize = 1, kHighsMatrixFormatRowwise = 2;
constexpr HighsInt kHighsSolutionStatusFeasible = 2;
constexpr HighsInt kHighsModelStatusOptimal = 7, kHighsModelStatusInfeasible = 8,
                   kHighsModelStatusUnboundedOrInfeasible = 9, kHighsModelStatusUnbounded = 10,
                   kHighsModelStatusObjectiveBound = 11, kHighsModelStatusInterrupt = 17;
constexpr HighsInt kHighsCallbackSimplexInterrupt = 1, kHighsCallbackIpmInterrupt = 2,
                   kHighsCallbackMipImprovingSolution = 4, kHighsCallbackMipInterrupt = 6;
