#include "heddle/fleet/size_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace heddle {
namespace {

constexpr double kSameTime = 1e-12;  // relative: sums of the same terms in another order

Status check_sizes(std::span<const double> weight, std::span<const double> us, int most) {
  if (weight.empty() || weight.size() != us.size() || weight.size() > kMostBucketSizes)
    return invalid_input("buckets are chosen from 1 to " + std::to_string(kMostBucketSizes) +
                         " sizes with a weight and a time each, not from " + std::to_string(weight.size()) +
                         (weight.size() > kMostBucketSizes ? "; round sizes up, so that fewer differ" : ""));
  if (most < 1 || most > kMostBuckets)
    return invalid_input("expected 1 to " + std::to_string(kMostBuckets) + " buckets, not " +
                         std::to_string(most));
  double sum = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    if (!(weight[i] >= 0) || !(us[i] >= 0) || !std::isfinite(weight[i]) || !std::isfinite(us[i]))
      return invalid_input("size " + std::to_string(i) + " has a weight or a time that is no number from 0");
    sum += weight[i];
  }
  if (!(sum > 0)) return invalid_input("no size has a weight above 0");
  return {};
}

}  // namespace

Result<BucketChoice> choose_buckets(std::span<const double> weight, std::span<const double> us, int most) {
  HEDDLE_RETURN_IF_ERROR(check_sizes(weight, us, most));
  const size_t n = weight.size();
  const size_t k = std::min(static_cast<size_t>(most), n);
  std::vector<double> before(n + 1, 0);  // weight of the sizes below i
  for (size_t i = 0; i < n; ++i) before[i + 1] = before[i] + weight[i];
  // least[j][i]: the least time of the sizes below i in j + 1 buckets, the last of which ends with size i - 1.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(k, std::vector<double>(n + 1, kNone));
  std::vector<std::vector<size_t>> from(k, std::vector<size_t>(n + 1, 0));
  for (size_t i = 1; i <= n; ++i) least[0][i] = us[i - 1] * before[i];
  for (size_t j = 1; j < k; ++j)
    for (size_t i = j + 1; i <= n; ++i)
      for (size_t p = j; p < i; ++p) {
        const double time = least[j - 1][p] + us[i - 1] * (before[i] - before[p]);
        if (time >= least[j][i]) continue;
        least[j][i] = time;
        from[j][i] = p;
      }
  size_t used = 0;
  for (size_t j = 1; j < k; ++j)
    if (least[j][n] < least[used][n] * (1 - kSameTime)) used = j;
  BucketChoice choice;
  choice.expected_us = least[used][n] / before[n];
  for (size_t i = n, j = used;; i = from[j][i], --j) {
    choice.sizes.insert(choice.sizes.begin(), i - 1);
    if (j == 0) break;
  }
  return choice;
}

double on_curve(std::span<const CurvePoint> points, double x) {
  const auto& first = points.front();
  const auto& last = points.back();
  if (x <= first.x) return first.x > 0 ? first.y * x / first.x : first.y;
  if (x >= last.x) return last.x > 0 ? last.y * x / last.x : last.y;
  size_t i = 1;
  while (points[i].x < x) ++i;
  const auto &a = points[i - 1], &b = points[i];
  return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
}

}  // namespace heddle
