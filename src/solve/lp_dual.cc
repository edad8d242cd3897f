// Weak duality: for any y, c x >= y (A x) + (c - A' y) x. The first term is at least y L for y > 0 and y U
// for y < 0; the second is least at one end of each variable's range.
#include <cmath>
#include <vector>

#include "heddle/solve/milp.h"

namespace heddle {
namespace {

// A sum with a limit of what rounding did to it.
class Sum {
 public:
  void add(long double term) {
    value_ += term;
    size_ += std::fabs(term);
    ++terms_;
  }
  long double value() const { return value_; }
  // Each addition and the product before it are off by at most half a unit in the last place of the sizes.
  long double error() const { return static_cast<long double>(terms_ + 2) * 0x1p-63L * size_; }

 private:
  long double value_ = 0, size_ = 0;
  int64_t terms_ = 0;
};

}  // namespace

double lp_dual_bound(const Milp& model, std::span<const double> duals, double most) {
  const auto rows = model.rows();
  const auto variables = model.variables();
  if (duals.size() != rows.size()) return -kNoBound;
  std::vector<Sum> reduced(variables.size());
  for (size_t j = 0; j < variables.size(); ++j) reduced[j].add(variables[j].cost);
  Sum total;
  total.add(model.constant());
  for (size_t i = 0; i < rows.size(); ++i) {
    const double side = duals[i] > 0 ? rows[i].lower : rows[i].upper;
    // A row that is open on this side says nothing.
    if (!std::isfinite(side) || !std::isfinite(duals[i]) || duals[i] == 0) continue;
    const long double y = duals[i];
    total.add(y * side);
    for (const Term& term : rows[i].terms)
      reduced[static_cast<size_t>(term.var.index)].add(-y * term.coefficient);
  }
  long double slack = 0;
  for (size_t j = 0; j < variables.size(); ++j) {
    const double lower = variables[j].lower;
    const double upper = std::isfinite(variables[j].upper) ? variables[j].upper : most;
    const long double d = reduced[j].value(), off = reduced[j].error();
    const double end = d > 0 ? lower : upper;
    if (!std::isfinite(end) && (d != 0 || off > 0)) return -kNoBound;
    if (std::isfinite(end)) total.add(d * end);
    const double far = std::max(std::fabs(lower), std::fabs(upper));
    if (off > 0 && !std::isfinite(far)) return -kNoBound;
    if (off > 0) slack += off * far;
  }
  const long double bound = total.value() - total.error() - slack * (1 + 0x1p-30L);
  return std::nextafter(static_cast<double>(bound), -kNoBound);
}

}  // namespace heddle
