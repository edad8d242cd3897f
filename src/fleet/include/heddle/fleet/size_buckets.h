// Which sizes a model is compiled for when its requests vary in size. A request runs at the smallest compiled
// size that holds it, so few sizes waste time on padding, and many cost memory and time to compile.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

inline constexpr int kMostBuckets = 64;
inline constexpr size_t kMostBucketSizes = 2048;  // different sizes that buckets are chosen from

struct BucketChoice {
  std::vector<size_t> sizes;  // indices of the chosen ones, ascending; the last is the largest of all
  double expected_us = 0;     // mean time of a request in its bucket
};

// At most `most` of the sizes, so that the expected time is least; the fewest that reach it. `weight[i]` is the
// share of requests of size i in any unit, `us[i]` the time of a request at that size; sizes are ascending.
// Exact, by dynamic programming over the sizes: O(most * sizes^2). Errors (invalid input): no size, more than
// kMostBucketSizes, `most` not in 1 .. kMostBuckets, weights or times that are negative or not finite, no
// weight above 0.
Result<BucketChoice> choose_buckets(std::span<const double> weight, std::span<const double> us, int most);

// The value at `x` of the line through points (x ascending, at least one); beyond the ends, in proportion to x.
struct CurvePoint {
  double x = 0, y = 0;
};
double on_curve(std::span<const CurvePoint> points, double x);

}  // namespace heddle
