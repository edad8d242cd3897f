#include "output_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle {
namespace {

struct TensorError {
  double largest = 0, mean = 0, cosine = 1;
};

TensorError tensor_error(const TensorValue& actual, const TensorValue& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.dtype != expected.dtype || actual.shape != expected.shape) return {kInfinity, kInfinity, 0};
  int64_t count = 1;
  for (const int64_t size : expected.shape) count *= size;
  double low = kInfinity, high = -kInfinity, largest = 0, sum = 0, dot = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = element_as_double(actual.view(), i), b = element_as_double(expected.view(), i);
    if (std::isnan(a) && std::isnan(b)) continue;
    const double off = a == b ? 0 : std::fabs(a - b);
    largest = std::isnan(off) ? kInfinity : std::max(largest, off);
    sum += std::isnan(off) ? kInfinity : off;
    if (std::isfinite(b)) low = std::min(low, b), high = std::max(high, b);
    dot += a * b, aa += a * a, bb += b * b;
  }
  if (largest == 0) return {};
  // Of a constant output, its size.
  const double range = high > low ? high - low : std::max(std::fabs(high), 1e-30);
  const double cosine = aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
  return {largest / range, sum / static_cast<double>(count) / range, std::isfinite(cosine) ? cosine : 0};
}

}  // namespace

OutputError output_error(std::span<const TensorValue> actual, std::span<const TensorValue> expected) {
  OutputError worst;
  if (actual.size() != expected.size()) {
    worst.largest = worst.mean = std::numeric_limits<double>::infinity();
    worst.cosine = 0;
  }
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const TensorError error = tensor_error(actual[i], expected[i]);
    worst.largest = std::max(worst.largest, error.largest);
    worst.mean = std::max(worst.mean, error.mean);
    worst.cosine = std::min(worst.cosine, error.cosine);
  }
  return worst;
}

}  // namespace heddle
