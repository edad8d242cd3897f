// Random streams and distributions for traffic and noise, on top of base's random numbers. The distributions
// are written out because std's may differ between standard libraries.
#pragma once

#include <cmath>
#include <cstdint>

#include "heddle/base/random.h"

namespace heddle {

// Streams of one seed with different numbers are independent.
inline Random random_stream(uint64_t seed, uint64_t stream) {
  return Random(seed ^ (stream * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull));
}

// Exponential with mean 1; finite.
inline double exponential(Random& random) { return -std::log1p(-random.unit()); }

// Normal with mean 0 and variance 1 (Box and Muller).
inline double normal(Random& random) {
  const double radius = std::sqrt(2 * exponential(random));
  return radius * std::cos(6.283185307179586 * random.unit());
}

}  // namespace heddle
