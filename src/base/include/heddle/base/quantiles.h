// Quantiles of samples.
#pragma once

#include <span>

namespace heddle {

// 0 for no samples.
double median_us(std::span<const double> times_us);
// Interpolated; `q` in [0, 1]. 0 for no samples.
double quantile_us(std::span<const double> times_us, double q);

}  // namespace heddle
