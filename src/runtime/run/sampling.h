// Statistics of time series from a noisy machine.
#pragma once

#include <span>
#include <vector>

namespace heddle {

// Time per request of a stream once `in_flight` requests have filled it, from the requests' finish times in
// any order.
double steady_period_us(std::vector<double> finishes_us, int in_flight);
// Half the interquartile range over the median; 0 for fewer than 4 samples.
double relative_spread(std::span<const double> times_us);

}  // namespace heddle
