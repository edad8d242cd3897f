#include <algorithm>
#include <cmath>

#include "heddle/base/hash.h"
#include "heddle/cost/cost.h"

namespace heddle {
namespace {

uint64_t segment_hash(std::span<const OpId> ops, DeviceId device) {
  Hasher h;
  h.number(static_cast<uint64_t>(device.value)).number(ops.size());
  for (OpId op : ops) h.number(static_cast<uint64_t>(op.value));
  return h.value();
}

bool same_segment(const SegmentCost& known, std::span<const OpId> ops, DeviceId device) {
  return known.device == device && std::equal(known.ops.begin(), known.ops.end(), ops.begin(), ops.end());
}

// Keeps the shared-out times of a known segment below its time in floating point too: without it, rounding
// could lift the "lower" bound above the true value by some ulps.
constexpr double kRoundingMargin = 1 - 1e-12;

}  // namespace

const char* origin_name(Origin origin) {
  switch (origin) {
    case Origin::kMeasured:
      return "measured";
    case Origin::kGiven:
      return "given";
    case Origin::kInterpolated:
      return "interpolated";
    case Origin::kScaled:
      return "scaled";
    case Origin::kEstimated:
      return "estimated";
  }
  return "unknown";
}

void CostTable::set(OpId op, DeviceId device, const Cost& cost) {
  const size_t i = op.index() * num_devices_ + device.index();
  us_[i] = cost.us;
  info_[i] = {cost.origin, static_cast<float>(cost.rel_spread)};
}

Cost CostTable::at(OpId op, DeviceId device) const {
  const size_t i = op.index() * num_devices_ + device.index();
  return {us_[i], info_[i].origin, info_[i].rel_spread};
}

void CostTable::set_segment(SegmentCost cost) {
  const uint64_t key = segment_hash(cost.ops, cost.device);
  const auto [first, last] = segment_index_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    SegmentCost& known = segments_[it->second];
    if (same_segment(known, cost.ops, cost.device)) {
      known.cost = cost.cost;
      return;
    }
  }
  segment_index_.emplace(key, static_cast<uint32_t>(segments_.size()));
  segments_.push_back(std::move(cost));
}

bool CostTable::knows_segment(std::span<const OpId> ops, DeviceId device) const {
  const auto [first, last] = segment_index_.equal_range(segment_hash(ops, device));
  return std::any_of(first, last,
                     [&](const auto& e) { return same_segment(segments_[e.second], ops, device); });
}

Cost CostTable::segment(std::span<const OpId> ops, DeviceId device) const {
  if (!segments_.empty()) {
    const auto [first, last] = segment_index_.equal_range(segment_hash(ops, device));
    for (auto it = first; it != last; ++it) {
      if (same_segment(segments_[it->second], ops, device)) return segments_[it->second].cost;
    }
  }
  if (ops.size() == 1) return at(ops[0], device);
  // The sum is as trusted as its least trusted part; its spread is the parts' mean weighted by time, which is
  // right when they vary together (a slower clock slows them all) and too large otherwise.
  Cost sum{.us = 0, .origin = Origin::kMeasured, .rel_spread = 0};
  double spread_us = 0;
  for (OpId op : ops) {
    const Cost part = at(op, device);
    sum.us += part.us;
    sum.origin = std::max(sum.origin, part.origin);
    spread_us += part.rel_spread * part.us;
  }
  if (sum.us > 0 && std::isfinite(sum.us)) sum.rel_spread = spread_us / sum.us;
  return sum;
}

std::vector<double> CostTable::bound_times() const {
  std::vector<double> bound = us_;
  for (const SegmentCost& known : segments_) {
    const double cost_us = known.cost.us;
    if (!std::isfinite(cost_us)) continue;
    // An op that cannot run alone but only in this segment weighs as much as the mean of the others.
    double finite_sum = 0;
    size_t finite = 0;
    for (OpId op : known.ops) {
      const double t = us(op, known.device);
      if (std::isfinite(t)) finite_sum += t, ++finite;
    }
    const bool all_finite = finite == known.ops.size();
    if (all_finite && cost_us >= finite_sum) continue;  // dearer than its parts: they are a bound already
    const double stand_in = finite_sum > 0 ? finite_sum / static_cast<double>(finite) : 1;
    const double weights = finite_sum + stand_in * static_cast<double>(known.ops.size() - finite);
    for (OpId op : known.ops) {
      const double t = us(op, known.device);
      const double weight = std::isfinite(t) ? t : stand_in;
      double& b = bound[op.index() * num_devices_ + known.device.index()];
      b = std::min(b, weight / weights * cost_us * kRoundingMargin);
    }
  }
  return bound;
}

}  // namespace heddle
