#include "heddle/runtime/stage_fit.h"

#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <thread>

#include "executor/mailbox.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/sampling.h"
#include "heddle/runtime/share_measurer.h"

namespace heddle {
namespace {

constexpr size_t kTerms = 3;
using Terms = std::array<double, kTerms>;
constexpr int kStageWarmups = 3;

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

Result<double> measure_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                               int least_runs, const Deadline& deadline) {
  HEDDLE_ASSIGN_OR_RETURN(const Measurement measured, time_at_once(probes, min_s, least_runs, deadline));
  return measured.median_us;
}

Result<Measurement> time_at_once(std::span<const std::unique_ptr<SegmentProbe>> probes, double min_s,
                                 int least_runs, const Deadline& deadline) {
  const size_t n = probes.size();
  std::atomic<int> round{0}, done{0};
  std::atomic<bool> quit{false};
  std::vector<Status> status(n);
  std::vector<std::thread> threads;
  const auto run = [&](size_t i) {
    if (status[i].ok()) status[i] = probes[i]->run_once();
  };
  for (size_t i = 1; i < n; ++i) {
    threads.emplace_back([&, i] {
      const AffinityGuard bound(probes[i]->cores());
      for (int seen = 0;;) {
        while (round.load(std::memory_order_acquire) == seen) {
          if (quit.load(std::memory_order_acquire)) return;
          relax_cpu();
        }
        ++seen;
        run(i);
        done.fetch_add(1, std::memory_order_acq_rel);
      }
    });
  }
  std::vector<double> times;
  {
    const AffinityGuard bound(probes[0]->cores());
    const int64_t begin = now_ns();
    for (int k = 0; n > 0; ++k) {
      const bool enough = static_cast<int>(times.size()) >= least_runs &&
                          static_cast<double>(now_ns() - begin) * 1e-9 >= min_s;
      if (enough || deadline.should_stop()) break;
      for (const auto& probe : probes) probe->prepare();
      done.store(0, std::memory_order_release);
      const int64_t start = now_ns();
      round.fetch_add(1, std::memory_order_acq_rel);
      run(0);
      while (done.load(std::memory_order_acquire) + 1 < static_cast<int>(n)) relax_cpu();
      if (k >= kStageWarmups) times.push_back(static_cast<double>(now_ns() - start) / 1000);
    }
  }
  quit.store(true, std::memory_order_release);
  for (std::thread& t : threads) t.join();
  for (Status& s : status) HEDDLE_RETURN_IF_ERROR(s);
  if (times.empty()) return Error(Code::kCancelled, "stopped before segments were measured at once");
  return Measurement{.median_us = median_us(times),
                     .rel_spread = relative_spread(times),
                     .runs = static_cast<int>(times.size())};
}

}  // namespace heddle
