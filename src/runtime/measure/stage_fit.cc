#include <array>
#include <cmath>
#include <optional>

#include "heddle/base/quantiles.h"
#include "heddle/runtime/segment_measurer.h"

namespace heddle {
namespace {

constexpr size_t kTerms = 3;
using Terms = std::array<double, kTerms>;

// The factors of serial, overlap and launch_us.
Terms terms_of(const StageSample& sample) {
  double sum = 0, busy = 0, longest = 0;
  for (const StageItem& item : sample.items) {
    sum += item.us;
    busy += item.busy_us;
    longest = std::max(longest, item.us);
  }
  return {sum, std::max(busy, longest), 1};
}

// Solves the normal equations over the terms in `mask` by Gaussian elimination; nothing if they are singular.
std::optional<Terms> solve(const std::array<Terms, kTerms>& gram, const Terms& right, unsigned mask) {
  std::vector<size_t> used;
  for (size_t i = 0; i < kTerms; ++i) {
    if ((mask >> i) & 1U) used.push_back(i);
  }
  const size_t n = used.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) a[i][j] = gram[used[i]][used[j]];
    a[i][n] = right[used[i]];
  }
  for (size_t i = 0; i < n; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    if (std::abs(a[pivot][i]) < 1e-12) return std::nullopt;
    std::swap(a[i], a[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double f = a[r][i] / a[i][i];
      for (size_t c = i; c <= n; ++c) a[r][c] -= f * a[i][c];
    }
  }
  Terms x{};
  for (size_t i = 0; i < n; ++i) x[used[i]] = a[i][n] / a[i][i];
  return x;
}

}  // namespace

StageFit fit_stage_model(std::span<const StageSample> samples) {
  StageFit fit;
  std::array<Terms, kTerms> gram{};
  Terms right{};
  std::vector<Terms> rows;  // divided by the measured time, so that errors are relative
  for (const StageSample& s : samples) {
    if (s.items.size() < 2 || !(s.us > 0)) continue;
    Terms row = terms_of(s);
    for (double& x : row) x /= s.us;
    for (size_t i = 0; i < kTerms; ++i) {
      right[i] += row[i];
      for (size_t j = 0; j < kTerms; ++j) gram[i][j] += row[i] * row[j];
    }
    rows.push_back(row);
  }
  if (rows.empty()) return fit;
  // Three non-negative unknowns: try every non-empty set of positive ones and take the best.
  double least = INFINITY;
  for (unsigned mask = 1; mask < 1U << kTerms; ++mask) {
    const auto x = solve(gram, right, mask);
    if (!x || (*x)[0] < 0 || (*x)[1] < 0 || (*x)[2] < 0) continue;
    double error = 0;
    for (const Terms& row : rows) {
      const double off = row[0] * (*x)[0] + row[1] * (*x)[1] + row[2] * (*x)[2] - 1;
      error += off * off;
    }
    if (error < least) {
      least = error;
      fit.model = {.serial = (*x)[0], .overlap = (*x)[1], .launch_us = (*x)[2]};
    }
  }
  std::vector<double> errors;
  for (const StageSample& s : samples) {
    if (s.items.size() >= 2 && s.us > 0) errors.push_back(std::abs(fit.model.us(s.items) - s.us) / s.us);
  }
  fit.samples = static_cast<int>(errors.size());
  fit.median_error = quantile_us(errors, 0.5);
  fit.largest_error = quantile_us(errors, 1);
  return fit;
}

}  // namespace heddle
