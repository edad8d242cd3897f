// The same rows for CP-SAT: binaries as they are, times in whole ticks, implications in place of the paper's
// H.
#include <cmath>

#include "slot_model.h"

namespace heddle {

CpModel SlotModel::cp() const {
  CpModel cp;
  const auto ticks = [](double units) { return static_cast<int64_t>(std::llround(units * kTicksPerUnit)); };
  std::vector<CpVar> of;
  std::vector<bool> is_time;
  for (const Milp::Variable& v : milp_.variables()) {
    is_time.push_back(v.kind == VarKind::kContinuous);
    const bool time = is_time.back();
    of.push_back(cp.add_integer(time ? ticks(v.lower) : std::llround(v.lower),
                                time ? ticks(v.upper) : std::llround(v.upper)));
  }
  // Every coefficient of a time is 1 or -1: in ticks, so is what a binary adds to it.
  const auto add = [&](const Milp::Row& row, std::span<const CpLit> when) {
    bool times = false;
    for (const Term& term : row.terms) times = times || is_time[static_cast<size_t>(term.var.index)];
    CpExpr sum;
    for (const Term& term : row.terms) {
      const auto at = static_cast<size_t>(term.var.index);
      sum.add(of[at], times && !is_time[at] ? ticks(term.coefficient) : std::llround(term.coefficient));
    }
    const int64_t none = int64_t{1} << 50;
    const auto limit = [&](double value) {
      if (!std::isfinite(value)) return value > 0 ? none : -none;
      return times ? ticks(value) : static_cast<int64_t>(std::llround(value));
    };
    cp.linear(limit(row.lower), std::move(sum), limit(row.upper), when);
  };
  for (const Milp::Row& row : milp_.rows()) add(row, {});
  for (const Milp::Indicator& i : milp_.indicators()) {
    const CpLit literal{of[static_cast<size_t>(i.binary.index)].index};
    const CpLit when = i.value ? literal : !literal;
    add(i.row, std::span(&when, 1));
  }
  CpExpr objective;
  objective.add(of[static_cast<size_t>(total_.index)], 1);
  cp.minimise(std::move(objective));
  for (const auto& [var, value] : milp_.start()) {
    const auto at = static_cast<size_t>(var.index);
    cp.hint(of[at], is_time[at] ? ticks(value) : std::llround(value));
  }
  return cp;
}

}  // namespace heddle
