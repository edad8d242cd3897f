#include "bound_fit.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/units.h"

namespace heddle {
namespace {

// Relative margin above all rounding errors of sums of a block's times: an excess beyond it is real.
constexpr double kRounding = 1e-9;

}  // namespace

SpanFit::SpanFit(const BoundTables& tables) : b_(tables), k_(tables.devices.size()), sets_of_(k_) {
  const auto add_set = [&](std::vector<uint32_t> set) {
    for (const uint32_t i : set) sets_of_[i].push_back(static_cast<uint32_t>(sets_.size()));
    sets_.push_back(std::move(set));
  };
  for (uint32_t i = 0; i < k_; ++i) add_set({i});
  for (auto& set : core_groups_among(*b_.problem.cluster, b_.devices)) add_set(std::move(set));
}

void SpanFit::clear() { entries_.clear(); }

void SpanFit::add(uint32_t op, const double* head, const double* tail) {
  entries_.push_back({op, head, tail});
}

double SpanFit::least_us() const {
  double least = kInfinity;
  for (const Entry& e : entries_) {
    for (size_t i = 0; i < k_; ++i) {
      if (b_.t(e.op, i) > 0) least = std::min(least, b_.t(e.op, i));
    }
  }
  return least < kInfinity ? least : 0;
}

bool SpanFit::too_short(double span) {
  const size_t sets = sets_.size();
  first_.assign(sets, kInfinity);
  last_.assign(sets, kInfinity);
  time_.assign(entries_.size() * k_, kInfinity);
  for (size_t e = 0; e < entries_.size(); ++e) {
    const Entry& entry = entries_[e];
    bool anywhere = false;
    for (size_t i = 0; i < k_; ++i) {
      const double t = b_.t(entry.op, i);
      if (!(entry.head[i] + entry.tail[i] - t <= span * (1 + kRounding))) continue;
      anywhere = true;
      time_[e * k_ + i] = t;
      for (const uint32_t s : sets_of_[i]) {
        first_[s] = std::min(first_[s], entry.head[i] - t);
        last_[s] = std::min(last_[s], entry.tail[i] - t);
      }
    }
    if (!anywhere) return true;
  }
  room_.assign(sets, 0);
  weight_.assign(sets, 0);
  double sum = 0;
  for (size_t s = 0; s < sets; ++s) {
    if (!(first_[s] < kInfinity)) continue;  // no op can be there
    room_[s] = std::max(span - first_[s] - last_[s], span * kRounding);
    sum += weight_[s] = room_[s];
  }
  if (!(sum > 0)) return false;
  // Multipliers weight_[s] >= 0 with sum 1: any such weights prove a misfit if the cheapest placement costs
  // more than 1.
  for (int round = 0; round < kFitRounds; ++round) {
    per_us_.assign(k_, 0);
    busy_.assign(k_, 0);
    for (size_t s = 0; s < sets; ++s) {
      weight_[s] /= sum;
      if (weight_[s] > 0) {
        for (const uint32_t i : sets_[s]) per_us_[i] += weight_[s] / room_[s];
      }
    }
    double cost = 0;
    for (size_t e = 0; e < entries_.size(); ++e) {
      const double* time = &time_[e * k_];
      double least = kInfinity;
      size_t at = 0;
      for (size_t i = 0; i < k_; ++i) {
        if (!(time[i] < kInfinity)) continue;
        const double s = time[i] * per_us_[i];
        if (s < least) least = s, at = i;
      }
      cost += least;
      busy_[at] += time[at];
    }
    if (cost > 1 + kRounding) return true;
    sum = 0;
    bool fits = true;
    const double step = 1.0 / (1 + 0.3 * round);
    for (size_t s = 0; s < sets; ++s) {
      if (!(room_[s] > 0)) continue;
      double load = 0;
      for (const uint32_t i : sets_[s]) load += busy_[i];
      fits = fits && load <= room_[s];
      sum += weight_[s] *= std::exp(step * std::clamp(load / room_[s] - 1, -1.0, 2.0));
    }
    if (fits || !(sum > 0)) return false;
  }
  return false;
}

}  // namespace heddle
