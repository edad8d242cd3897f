#include "highs_model.h"

#include <algorithm>
#include <string>
#include <vector>

namespace heddle {

std::string highs_name() { return std::string("HiGHS ") + Highs_version(); }

Result<HighsPtr> make_highs(const Milp& model, const SolveOptions& options, double feasibility_tolerance,
                            std::span<const double> fixed) {
  HighsPtr highs(Highs_create());
  if (highs == nullptr) return internal_error("HiGHS cannot create a solver");
  void* h = highs.get();
  Highs_setBoolOptionValue(h, "output_flag", 0);
  Highs_setIntOptionValue(h, "threads", options.threads);
  Highs_setStringOptionValue(h, "parallel", options.threads > 1 ? "choose" : "off");
  if (!options.presolve.value_or(true)) Highs_setStringOptionValue(h, "presolve", "off");
  Highs_setIntOptionValue(h, "random_seed", static_cast<HighsInt>(options.seed % 2147483647));
  Highs_setDoubleOptionValue(h, "mip_rel_gap", options.rel_gap);
  Highs_setDoubleOptionValue(h, "mip_abs_gap", options.abs_gap);
  Highs_setDoubleOptionValue(h, "mip_feasibility_tolerance", feasibility_tolerance);
  Highs_setDoubleOptionValue(h, "primal_feasibility_tolerance", std::min(1e-7, feasibility_tolerance));
  const size_t n = model.variables().size();
  std::vector<double> cost(n), lower(n), upper(n);
  std::vector<HighsInt> integrality(n, kHighsVarTypeContinuous);
  bool any_integer = false;
  for (size_t i = 0; i < n; ++i) {
    const auto& v = model.variables()[i];
    cost[i] = v.cost;
    lower[i] = v.lower;
    upper[i] = v.upper;
    if (v.kind == VarKind::kContinuous) continue;
    if (!fixed.empty()) {
      lower[i] = upper[i] = fixed[i];
    } else {
      integrality[i] = kHighsVarTypeInteger;
      any_integer = true;
    }
  }
  std::vector<HighsInt> starts, columns;
  std::vector<double> values, row_lower, row_upper;
  for (const Milp::Row& row : model.rows()) {
    starts.push_back(static_cast<HighsInt>(columns.size()));
    row_lower.push_back(row.lower);
    row_upper.push_back(row.upper);
    for (const Term& term : row.terms) {
      columns.push_back(term.var.index);
      values.push_back(term.coefficient);
    }
  }
  const auto cols = static_cast<HighsInt>(n), rows = static_cast<HighsInt>(starts.size()),
             entries = static_cast<HighsInt>(values.size());
  const HighsInt status =
      any_integer
          ? Highs_passMip(h, cols, rows, entries, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                          model.constant(), cost.data(), lower.data(), upper.data(), row_lower.data(),
                          row_upper.data(), starts.data(), columns.data(), values.data(), integrality.data())
          : Highs_passLp(h, cols, rows, entries, kHighsMatrixFormatRowwise, kHighsObjSenseMinimize,
                         model.constant(), cost.data(), lower.data(), upper.data(), row_lower.data(),
                         row_upper.data(), starts.data(), columns.data(), values.data());
  if (status == kHighsStatusError) {
    return invalid_input(highs_name() +
                         " refuses the model: a coefficient is 1e15 or more; use larger units");
  }
  return highs;
}

}  // namespace heddle
