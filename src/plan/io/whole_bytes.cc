#include "whole_bytes.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/decimals.h"
#include "heddle/graph/graph.h"

namespace heddle {

Result<WholeBytes> WholeBytes::make(std::span<const double> sizes, std::span<const double> limits) {
  const auto scale = decimal_scale(sizes, kMostDecimals);
  if (!scale) return invalid_input("a size has more than nine decimals; round it");
  WholeBytes whole;
  whole.scale_ = *scale;
  if (std::find(limits.begin(), limits.end(), 0.0) != limits.end()) whole.scale_ *= 2;
  double sum = 0;
  for (const double size : sizes) sum += size * whole.scale_;
  if (sum > static_cast<double>(kMaxGraphBytes) / 2)
    return invalid_input("the sizes sum to more than 2^59 of their smallest decimal; use a coarser unit");
  return whole;
}

int64_t WholeBytes::size(double value) const { return std::llround(value * scale_); }

int64_t WholeBytes::limit(double value) const {
  // Limits may be sums of decimal fractions: a part in 10^12 is rounding, not memory.
  const double bytes = std::floor(value * scale_ * (1 + 1e-12));
  return bytes >= static_cast<double>(kMaxGraphBytes) ? kMaxGraphBytes
                                                      : std::max<int64_t>(1, static_cast<int64_t>(bytes));
}

}  // namespace heddle
