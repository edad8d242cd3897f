#include "highs_model.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle {
namespace {

struct Matrix {
  std::vector<HighsInt> starts, columns;
  std::vector<double> values, lower, upper;
};

Matrix by_rows(const Milp& model) {
  Matrix m;
  for (const Milp::Row& row : model.rows()) {
    m.starts.push_back(static_cast<HighsInt>(m.columns.size()));
    m.lower.push_back(row.lower);
    m.upper.push_back(row.upper);
    for (const Term& term : row.terms) {
      m.columns.push_back(term.var.index);
      m.values.push_back(term.coefficient);
    }
  }
  return m;
}

}  // namespace

Result<HighsPtr> make_highs(const Milp& model, const HighsSetup& setup) {
  HighsPtr highs(Highs_create());
  if (highs == nullptr) return Error(Code::kInternal, "HiGHS cannot create a solver");
  void* h = highs.get();
  Highs_setBoolOptionValue(h, "output_flag", 0);
  Highs_setIntOptionValue(h, "threads", std::max(1, setup.threads));
  Highs_setStringOptionValue(h, "parallel", setup.threads > 1 ? "choose" : "off");
  Highs_setIntOptionValue(h, "random_seed", static_cast<HighsInt>(setup.seed % 2147483647));
  Highs_setDoubleOptionValue(h, "mip_rel_gap", std::max(0.0, setup.rel_gap));
  Highs_setDoubleOptionValue(h, "mip_abs_gap", std::max(0.0, setup.abs_gap));
  Highs_setDoubleOptionValue(h, "mip_feasibility_tolerance", setup.feasibility_tolerance);
  Highs_setDoubleOptionValue(h, "primal_feasibility_tolerance", std::min(1e-7, setup.feasibility_tolerance));
  const size_t n = model.variables().size();
  std::vector<double> cost(n), lower(n), upper(n);
  std::vector<HighsInt> integrality(n, kHighsVarTypeContinuous);
  bool any_integer = false;
  for (size_t i = 0; i < n; ++i) {
    const auto& v = model.variables()[i];
    cost[i] = v.cost;
    lower[i] = v.lower;
    upper[i] = v.upper;
    if (v.kind == VarKind::kContinuous || setup.relax) continue;
    if (!setup.fixed.empty()) {
      lower[i] = upper[i] = setup.fixed[i];
    } else {
      integrality[i] = kHighsVarTypeInteger;
      any_integer = true;
    }
  }
  const Matrix m = by_rows(model);
  const auto cols = static_cast<HighsInt>(n), rows = static_cast<HighsInt>(m.starts.size()),
             entries = static_cast<HighsInt>(m.values.size());
  const HighsInt status =
      any_integer ? Highs_passMip(h, cols, rows, entries, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                                  model.constant(), cost.data(), lower.data(), upper.data(), m.lower.data(),
                                  m.upper.data(), m.starts.data(), m.columns.data(), m.values.data(),
                                  integrality.data())
                  : Highs_passLp(h, cols, rows, entries, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                                 model.constant(), cost.data(), lower.data(), upper.data(), m.lower.data(),
                                 m.upper.data(), m.starts.data(), m.columns.data(), m.values.data());
  if (status == kHighsStatusError) {
    return Error(Code::kInvalidInput,
                 std::string("HiGHS ") + Highs_version() +
                     " refuses the model: a coefficient is 1e15 or more; use larger units");
  }
  return highs;
}

}  // namespace heddle
