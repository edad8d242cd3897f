// Rounding to three digits: the precision of short measurements, and easy to read in files.
#pragma once

#include <fmt/format.h>

#include <cstdlib>

namespace heddle {

// Goes through text, because a product of powers of ten is not always the double nearest to the decimal.
inline double rounded(double value) {
  return value > 0 ? std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr) : 0;
}

}  // namespace heddle
