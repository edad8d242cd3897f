#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/base/hash.h"
#include "heddle/base/spelling.h"
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

// Keeps the sum of a known segment's distributed times below its time in floating point. Otherwise rounding
// could lift the "lower" bound above the true value by some ulps.
constexpr double kRoundingMargin = 1 - 1e-12;

constexpr const char* kOriginNames[] = {"measured", "given", "interpolated", "scaled", "estimated"};

// Nine in ten of the comparisons in docs/cost-model.md, "Error bands", are within these.
constexpr double kEstimatedFactor = 2, kScaledFactor = 1.8;

}  // namespace

const char* origin_name(Origin origin) { return kOriginNames[static_cast<size_t>(origin)]; }

std::optional<Origin> origin_named(std::string_view name) { return enum_named<Origin>(kOriginNames, name); }

double Cost::error_factor() const {
  if (origin == Origin::kEstimated) return kEstimatedFactor;
  return origin == Origin::kScaled ? kScaledFactor : 1 + rel_spread;
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

void CostTable::set_utilization(OpId op, DeviceId device, double utilization) {
  if (utilization_.empty()) utilization_.assign(us_.size(), 1.0);
  utilization_[op.index() * num_devices_ + device.index()] = utilization;
}

void CostTable::set_host_access(OpId op, DeviceId device, double us) {
  if (host_access_.empty()) host_access_.assign(us_.size(), kImpossible);
  host_access_[op.index() * num_devices_ + device.index()] = us;
}

void CostTable::set_stage_model(DeviceId device, const StageModel& model) {
  if (stage_models_.empty()) stage_models_.assign(num_devices_, StageModel());
  stage_models_[device.index()] = model;
}

void CostTable::set_core_taken(DeviceId device, double factor) {
  if (core_taken_.empty()) core_taken_.assign(num_devices_, 0);
  core_taken_[device.index()] = factor;
}

StageItem CostTable::stage_item(std::span<const OpId> ops, DeviceId device, double item_us) const {
  if (utilization_.empty()) return {item_us, item_us};
  if (ops.size() == 1) return {item_us, item_us * utilization(ops[0], device)};
  const double stand_in = stand_in_us(ops, device);
  double weights = 0, busy = 0;
  for (const OpId op : ops) {
    const double t = us(op, device);
    const double weight = std::isfinite(t) ? t : stand_in;
    weights += weight;
    busy += weight * utilization(op, device);
  }
  // Ops without time: the share is arbitrary.
  return {item_us, weights > 0 ? item_us * (busy / weights) : item_us};
}

double CostTable::stand_in_us(std::span<const OpId> ops, DeviceId device) const {
  double finite_sum = 0;
  size_t finite = 0;
  for (const OpId op : ops) {
    const double t = us(op, device);
    if (std::isfinite(t)) finite_sum += t, ++finite;
  }
  return finite_sum > 0 ? finite_sum / static_cast<double>(finite) : 1;
}

void CostTable::set_ops(std::vector<OpId> ops, DeviceId device, const Cost& cost) {
  if (ops.size() == 1) {
    set(ops.front(), device, cost);
  } else {
    set_segment({std::move(ops), device, cost});
  }
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

void CostTable::scale(DeviceId device, double factor) {
  for (size_t i = device.index(); i < us_.size(); i += num_devices_) us_[i] *= factor;
  for (size_t i = device.index(); i < host_access_.size(); i += num_devices_) host_access_[i] *= factor;
  for (SegmentCost& segment : segments_)
    if (segment.device == device) segment.cost.us *= factor;
}

CostTable CostTable::placed(std::span<const DeviceId> device) const {
  return without([&](OpId op, DeviceId d) { return device[op.index()] != d; });
}

CostTable CostTable::without(const std::function<bool(OpId, DeviceId)>& forbidden) const {
  CostTable copy = *this;
  for (size_t op = 0; op < num_ops(); ++op) {
    for (size_t d = 0; d < num_devices_; ++d) {
      if (!forbidden(OpId(op), DeviceId(d))) continue;
      copy.set(OpId(op), DeviceId(d), {});
      if (has_host_access()) copy.set_host_access(OpId(op), DeviceId(d), kImpossible);
    }
  }
  copy.segments_.clear();
  copy.segment_index_.clear();
  for (const SegmentCost& segment : segments_) {
    const bool there = std::none_of(segment.ops.begin(), segment.ops.end(),
                                    [&](OpId op) { return forbidden(op, segment.device); });
    if (there) copy.set_segment(segment);
  }
  return copy;
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
  // The sum is as trustworthy as its least trusted part. Its spread is the parts' mean weighted by time:
  // right if they vary together (a slower clock slows all of them), otherwise too large.
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
    // An op that runs only within this segment gets the mean weight of the others.
    const double stand_in = stand_in_us(known.ops, known.device);
    double weights = 0;
    bool all_finite = true;
    for (OpId op : known.ops) {
      const double t = us(op, known.device);
      all_finite = all_finite && std::isfinite(t);
      weights += std::isfinite(t) ? t : stand_in;
    }
    if (all_finite && cost_us >= weights) continue;  // slower than its parts: they are a bound already
    for (OpId op : known.ops) {
      const double t = us(op, known.device);
      const double weight = std::isfinite(t) ? t : stand_in;
      double& b = bound[op.index() * num_devices_ + known.device.index()];
      b = std::min(b, weight / weights * cost_us * kRoundingMargin);
    }
  }
  return bound;
}

std::vector<double> CostTable::bound_work(int stage_width) const {
  std::vector<double> work = bound_times();
  if (stage_width < 2 || !has_stage_models()) return work;
  for (size_t v = 0; v < num_ops(); ++v) {
    for (size_t d = 0; d < num_devices_; ++d) {
      double& w = work[v * num_devices_ + d];
      if (!std::isfinite(w)) continue;
      w = stage_models_[d].least_us({w, w * utilization(OpId(v), DeviceId(d))}) * kRoundingMargin;
    }
  }
  return work;
}

}  // namespace heddle
