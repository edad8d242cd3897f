// Solves small integer models by brute force.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace heddle {

// Calls `visit` with every point of the box.
inline void for_each_point(std::span<const int64_t> lower, std::span<const int64_t> upper,
                           const std::function<void(std::span<const int64_t>)>& visit) {
  std::vector<int64_t> x(lower.begin(), lower.end());
  for (size_t i = 0; i < x.size(); ++i) {
    if (lower[i] > upper[i]) return;
  }
  for (;;) {
    visit(x);
    size_t i = 0;
    for (; i < x.size() && x[i] == upper[i]; ++i) x[i] = lower[i];
    if (i == x.size()) return;
    ++x[i];
  }
}

// The smallest objective among the points that fit.
inline std::optional<int64_t> least(std::span<const int64_t> lower, std::span<const int64_t> upper,
                                    const std::function<bool(std::span<const int64_t>)>& fits,
                                    const std::function<int64_t(std::span<const int64_t>)>& objective) {
  std::optional<int64_t> best;
  for_each_point(lower, upper, [&](std::span<const int64_t> x) {
    if (!fits(x)) return;
    const int64_t value = objective(x);
    if (!best || value < *best) best = value;
  });
  return best;
}

}  // namespace heddle
