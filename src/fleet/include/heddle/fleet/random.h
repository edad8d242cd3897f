// What traffic and noise need beyond base's random numbers: streams of one seed, and distributions (std's may
// differ between libraries).
#pragma once

#include <cmath>
#include <cstdint>

#include "heddle/base/random.h"

namespace heddle {

// Different streams of one seed are independent.
inline Random random_stream(uint64_t seed, uint64_t stream) {
  return Random(seed ^ (stream * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull));
}

// Of mean 1; finite.
inline double exponential(Random& random) { return -std::log1p(-random.unit()); }

// Of mean 0 and variance 1 (Box and Muller).
inline double normal(Random& random) {
  const double radius = std::sqrt(2 * exponential(random));
  return radius * std::cos(6.283185307179586 * random.unit());
}

}  // namespace heddle
