// Time in the data plane: whole nanoseconds since any origin that the caller likes. Integers, so that sums do
// not depend on their order and a simulation is the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle {

using TimeNs = int64_t;

// Far behind every time that occurs; so far below the type's limit that adding a duration does not overflow.
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max() / 4;
inline constexpr TimeNs kNsPerUs = 1000;
inline constexpr TimeNs kNsPerSecond = 1'000'000'000;

// Rounds to the nearest nanosecond; not a number and what is out of range give 0 or kNever.
inline TimeNs ns_from_us(double us) {
  if (!(us > 0)) return 0;
  const double ns = us * 1e3;
  return ns >= static_cast<double>(kNever) ? kNever : static_cast<TimeNs>(std::llround(ns));
}
// How much longer work that has not ended when it was expected to is believed to take: a sixteenth at first,
// since most is late by little, then each time as much as it is late already.
inline TimeNs overdue_extension(TimeNs elapsed, TimeNs expected) {
  return std::max({TimeNs{1}, expected / 16, elapsed - expected});
}
inline double us_from_ns(TimeNs ns) { return static_cast<double>(ns) * 1e-3; }
inline double seconds_from_ns(TimeNs ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace heddle
