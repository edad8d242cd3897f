// Time in the data plane: whole nanoseconds from an origin that the caller chooses. Integer sums do not
// depend on their order, so a simulation gives the same result on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle {

using TimeNs = int64_t;

// Later than every time that occurs, and small enough that adding a duration to it does not overflow.
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max() / 4;
inline constexpr TimeNs kNsPerUs = 1000;
inline constexpr TimeNs kNsPerSecond = 1'000'000'000;

// Rounds to the nearest nanosecond. NaN and negative times give 0; times beyond kNever give kNever.
inline TimeNs ns_from_us(double us) {
  if (!(us > 0)) return 0;
  const double ns = us * 1e3;
  return ns >= static_cast<double>(kNever) ? kNever : static_cast<TimeNs>(std::llround(ns));
}
// How much longer overdue work is expected to take. The first extension is a sixteenth of the expected time,
// since most work is only slightly late. Later extensions equal the delay so far.
inline TimeNs overdue_extension(TimeNs elapsed, TimeNs expected) {
  return std::max({TimeNs{1}, expected / 16, elapsed - expected});
}
inline double us_from_ns(TimeNs ns) { return static_cast<double>(ns) * 1e-3; }
inline double seconds_from_ns(TimeNs ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace heddle
