#include "sampling.h"

#include <algorithm>
#include <vector>

#include "heddle/base/quantiles.h"

namespace heddle {

double steady_period_us(std::vector<double> finishes_us, int in_flight) {
  if (finishes_us.empty()) return 0;
  std::sort(finishes_us.begin(), finishes_us.end());
  const size_t n = finishes_us.size();
  const auto skip = static_cast<size_t>(in_flight);
  if (n <= 2 * skip) return finishes_us.back() / static_cast<double>(n);
  return (finishes_us[n - 1] - finishes_us[skip - 1]) / static_cast<double>(n - skip);
}

double relative_spread(std::span<const double> times_us) {
  if (times_us.size() < 4) return 0;
  const double median = median_us(times_us);
  return median > 0 ? (quantile_us(times_us, 0.75) - quantile_us(times_us, 0.25)) / 2 / median : 0;
}

}  // namespace heddle
