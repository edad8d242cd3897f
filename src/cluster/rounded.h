// Three digits: what short measurements can tell, and files that people can read.
#pragma once

#include <fmt/format.h>

#include <cstdlib>

namespace heddle {

// By way of text, because the nearest double to a decimal is not that of a product of powers of ten.
inline double rounded(double value) {
  return value > 0 ? std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr) : 0;
}

}  // namespace heddle
