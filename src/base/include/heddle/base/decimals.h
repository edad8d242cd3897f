// Decimal fractions as whole numbers.
#pragma once

#include <optional>
#include <span>

namespace heddle {

inline constexpr int kMostDecimals = 9;

// Is value * scale a whole number, up to the rounding of decimal fractions as doubles?
bool is_whole_at(double value, double scale);

// The least power of ten, from 1 to 10^decimals, that makes every value whole; nullopt when there is none.
std::optional<double> decimal_scale(std::span<const double> values, int decimals);

}  // namespace heddle
