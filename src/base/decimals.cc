#include "heddle/base/decimals.h"

#include <algorithm>
#include <cmath>

namespace heddle {

bool is_whole_at(double value, double scale) {
  const double x = value * scale;
  return std::fabs(x - std::round(x)) <= std::max(1e-6, 1e-15 * std::fabs(x));
}

std::optional<double> decimal_scale(std::span<const double> values, int decimals) {
  double scale = 1;
  for (int d = 0; d <= decimals; ++d, scale *= 10) {
    if (std::all_of(values.begin(), values.end(), [&](double v) { return is_whole_at(v, scale); }))
      return scale;
  }
  return std::nullopt;
}

}  // namespace heddle
