#include "drift_watch.h"

#include <algorithm>
#include <set>

namespace heddle {
namespace {

TimesOf times_of(const PoolRole& role) { return {role.model, role.device_class, role.share}; }

// A single look never corrects by more, whatever a counter says.
constexpr double kMostFactor = 1000;

double ratio_of(double busy_s, double predicted_s) {
  return predicted_s > 0 ? std::clamp(busy_s / predicted_s, 1 / kMostFactor, kMostFactor) : 1;
}

}  // namespace

DriftWatch::DriftWatch(const DriftOptions& options)
    : options_([&options] {
        auto o = options;
        o.window_runs = std::max<uint64_t>(1, o.window_runs);  // a ratio is of something
        return o;
      }()) {}

DriftWatch::Sample DriftWatch::Pool::window() const {
  const Sample &from = samples.front(), &to = samples.back();
  return {to.runs - from.runs, to.busy_s - from.busy_s, to.predicted_s - from.predicted_s};
}

void DriftWatch::plan_began() { pools_.clear(); }

void DriftWatch::take(Pool& pool, const PoolReading& reading, double now_s) const {
  if (reading.runs < pool.samples.back().runs) pool = Pool();  // another plan's counters
  if (reading.runs == pool.samples.back().runs) return;        // no news
  pool.samples.push_back({reading.runs, reading.busy_s, reading.predicted_s});
  while (reading.runs - pool.samples[1].runs >= options_.window_runs) pool.samples.pop_front();
  pool.last_run_s = now_s;
  const Sample window = pool.window();
  const bool outside =
      window.runs >= options_.window_runs && is_outside(ratio_of(window.busy_s, window.predicted_s));
  if (outside && !pool.outside) {
    pool.outside_since_s = now_s;
    pool.outside_runs = reading.runs;
  }
  pool.outside = outside;
}

std::vector<Drift> DriftWatch::look(double now_s, const Fleet& fleet, std::span<const PoolReading> pools) {
  for (const auto& reading : pools) take(pools_[reading.role], reading, now_s);
  std::set<TimesOf> off;
  for (const auto& [role, pool] : pools_)
    if (pool.outside && pool.samples.back().runs - pool.outside_runs >= options_.window_runs)
      off.insert(times_of(role));
  std::vector<Drift> drifts;
  for (const auto& times : off) {
    const int m = fleet.model_named(times.model);
    if (m < 0) continue;
    auto drift = drift_of(times, static_cast<size_t>(fleet.models[static_cast<size_t>(m)].blocks));
    if (!backs_off(drift, now_s)) drifts.push_back(std::move(drift));
  }
  // One of them must have lasted; the others come along.
  const bool lasts = std::any_of(drifts.begin(), drifts.end(), [this](const Drift& drift) {
    return std::any_of(pools_.begin(), pools_.end(), [this, &drift](const auto& entry) {
      const Pool& pool = entry.second;
      return times_of(entry.first) == drift.times && pool.outside &&
             pool.samples.back().runs - pool.outside_runs >= options_.window_runs &&
             pool.last_run_s - pool.outside_since_s >= options_.hold_s;
    });
  });
  if (!lasts) drifts.clear();
  return drifts;
}

Drift DriftWatch::drift_of(const TimesOf& times, size_t blocks) const {
  Drift drift;
  drift.times = times;
  double busy_s = 0, predicted_s = 0;
  std::vector<double> weighted(blocks, 0), weights(blocks, 0);
  for (const auto& [role, pool] : pools_) {
    const Sample window = pool.window();
    if (times_of(role) != times || window.runs < options_.window_runs) continue;
    busy_s += window.busy_s;
    predicted_s += window.predicted_s;
    drift.runs += window.runs;
    for (auto b = static_cast<size_t>(role.block_from);
         b < std::min(blocks, static_cast<size_t>(role.block_to)); ++b) {
      weighted[b] += window.predicted_s * ratio_of(window.busy_s, window.predicted_s);
      weights[b] += window.predicted_s;
    }
  }
  drift.ratio = ratio_of(busy_s, predicted_s);
  for (size_t b = 0; b < blocks; ++b)
    drift.factors.push_back(weights[b] > 0 ? weighted[b] / weights[b] : drift.ratio);
  return drift;
}

bool DriftWatch::backs_off(const Drift& drift, double now_s) const {
  const auto it = back_offs_.find(drift.times);
  return it != back_offs_.end() && now_s < it->second.until_s && !is_outside(drift.ratio / it->second.ratio);
}

void DriftWatch::refused(std::span<const Drift> drifts, double now_s) {
  for (const auto& drift : drifts) {
    auto& b = back_offs_[drift.times];
    b.wait_s = b.wait_s > 0 ? std::min(2 * b.wait_s, options_.most_back_off_s) : options_.back_off_s;
    b.until_s = now_s + b.wait_s;
    b.ratio = drift.ratio;
  }
}

void DriftWatch::kept(std::span<const Drift> drifts) {
  for (const auto& drift : drifts) back_offs_.erase(drift.times);
}

std::vector<PoolRatio> DriftWatch::ratios() const {
  std::vector<PoolRatio> out;
  for (const auto& [role, pool] : pools_) {
    const Sample window = pool.window();
    if (window.runs >= options_.window_runs)
      out.push_back({role, ratio_of(window.busy_s, window.predicted_s), window.runs});
  }
  return out;
}

}  // namespace heddle
