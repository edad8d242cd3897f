// What a series of times from a noisy machine says.
#pragma once

#include <span>

namespace heddle {

// What something takes when nobody disturbs it, from a series of times that others disturbed: the 5 %
// quantile (interpolated). Disturbance only adds time, so low quantiles agree between runs where medians do
// not, and the minimum itself rests on one sample (docs/runtime.md holds the figures). 0 for an empty series.
double quiet_time_us(std::span<const double> times_us);
double median_us(std::span<const double> times_us);
// Interpolated; `q` in [0, 1]. 0 for an empty series.
double quantile_us(std::span<const double> times_us, double q);
// Half the interquartile range over the median; 0 for fewer than 4 samples.
double relative_spread(std::span<const double> times_us);

}  // namespace heddle
