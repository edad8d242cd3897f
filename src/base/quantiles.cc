#include "heddle/base/quantiles.h"

#include <algorithm>
#include <vector>

namespace heddle {

double quantile_us(std::span<const double> times_us, double q) {
  if (times_us.empty()) return 0;
  std::vector<double> sorted(times_us.begin(), times_us.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - static_cast<double>(below));
}

double median_us(std::span<const double> times_us) { return quantile_us(times_us, 0.5); }

}  // namespace heddle
