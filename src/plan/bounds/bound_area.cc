#include "bound_area.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heddle/base/units.h"

namespace heddle {

AreaBound::AreaBound(const BoundTables& tables) : b_(tables), k_(tables.devices.size()) {
  find_compute_resources();
  num_load_ = b_.num_load_resources;
  load_users_.resize(num_load_);
  for (size_t i = 0; i < k_; ++i) {
    for (const uint32_t r : b_.load_resources[i]) load_users_[r].push_back(static_cast<uint32_t>(i));
  }
  find_pools();
  const size_t timed = compute_.size() + num_load_;
  y_.assign(timed + pools_.size(), 0);
  // Start with all compute resources weighted equally; loads and memory gain weight if they turn out scarce.
  for (size_t r = 0; r < timed; ++r) y_[r] = r < compute_.size() ? 1 : 1e-3;
  for (size_t p = 0; p < pools_.size(); ++p) y_[timed + p] = 0.1;
}

// Latency: maximal sets of devices that pairwise exclude each other. Throughput: devices, and the devices of
// each shared core, because these loads define the period.
void AreaBound::find_compute_resources() {
  const Cluster& cluster = *b_.problem.cluster;
  std::set<std::vector<uint32_t>> sets;
  std::vector<uint8_t> covered(k_, 0);
  for (std::vector<uint32_t> set : core_groups_among(cluster, b_.devices)) {
    if (b_.problem.objective != Objective::kThroughput) {
      for (uint32_t i = 0; i < k_; ++i) {
        const auto others = cluster.overlaps(b_.devices[i]);
        const bool fits = std::all_of(set.begin(), set.end(), [&](uint32_t j) {
          return i != j && std::find(others.begin(), others.end(), b_.devices[j]) != others.end();
        });
        if (fits) set.push_back(i);
      }
      std::sort(set.begin(), set.end());
    }
    for (const uint32_t i : set) covered[i] = 1;
    sets.insert(set);
  }
  compute_.assign(sets.begin(), sets.end());
  for (uint32_t i = 0; i < k_; ++i) {
    if (!covered[i]) compute_.push_back({i});
  }
}

void AreaBound::find_pools() {
  // Parameters that may be dropped need not be in memory at the same time.
  if (b_.cold && b_.problem.execution.parameter_drops) return;
  const Cluster& cluster = *b_.problem.cluster;
  double total = 0;
  for (const double share : b_.param_share) total += share;
  std::vector<std::vector<uint32_t>> devices(static_cast<size_t>(cluster.num_memory_pools()));
  for (uint32_t i = 0; i < k_; ++i)
    devices[static_cast<size_t>(cluster.memory_pool(b_.devices[i]))].push_back(i);
  for (size_t p = 0; p < devices.size(); ++p) {
    const auto bytes = static_cast<double>(cluster.memory_pool_bytes(static_cast<int>(p)));
    if (!devices[p].empty() && bytes > 0 && bytes < total) pools_.push_back({bytes, devices[p]});
  }
}

// Scales the time part to sum 1; computes the weight of a microsecond and of a byte on each device.
void AreaBound::spread_weights() {
  const size_t timed = compute_.size() + num_load_;
  double sum = 0;
  for (size_t r = 0; r < timed; ++r) sum += y_[r];
  for (double& y : y_) y /= sum;
  per_us_.assign(k_, 0);
  per_byte_.assign(k_, 0);
  per_load_byte_.assign(k_, 0);
  for (size_t r = 0; r < compute_.size(); ++r) {
    for (const uint32_t i : compute_[r]) per_us_[i] += y_[r];
  }
  for (size_t r = 0; r < num_load_; ++r) {
    for (const uint32_t i : load_users_[r])
      per_load_byte_[i] += y_[compute_.size() + r] * b_.loads[i].us_per_byte;
  }
  per_host_us_ = per_us_;
  for (uint32_t i = 0; i < k_; ++i) {
    for (const uint32_t r : b_.host_resources[i]) per_host_us_[i] += y_[compute_.size() + r];
  }
  for (size_t p = 0; p < pools_.size(); ++p) {
    for (const uint32_t i : pools_[p].devices) per_byte_[i] += y_[timed + p] * scale_ / pools_[p].bytes;
  }
}

AreaBound::Choice AreaBound::cheapest(size_t v) const {
  Choice best{kInfinity};
  const double* time = b_.has_host_access() ? &b_.loaded_time[v * k_] : &b_.time[v * k_];
  const double* load = &b_.load_share[v * k_];
  for (size_t i = 0; i < k_; ++i) {
    // Skip a device that cannot run the op: at weight 0 the product would be infinity times 0.
    if (time[i] < kInfinity) {
      const double s = time[i] * per_us_[i] + load[i] * per_load_byte_[i] + b_.param_share[v] * per_byte_[i];
      if (s < best.score) best = {s, i, false};
    }
    if (b_.has_host_access() && b_.host_time[v * k_ + i] < kInfinity) {
      const double s = b_.host_time[v * k_ + i] * per_host_us_[i];
      if (s < best.score) best = {s, i, true};
    }
  }
  return best;
}

double AreaBound::compute_weight() const {
  double sum = 0;
  for (size_t r = 0; r < compute_.size(); ++r) sum += y_[r];
  return sum;
}

double AreaBound::memory_discount() const {
  double sum = 0;
  for (size_t p = 0; p < pools_.size(); ++p) sum += y_[compute_.size() + num_load_ + p];
  return sum * scale_;
}

double AreaBound::evaluate(const std::vector<uint32_t>& subset) {
  device_us_.assign(k_, 0);
  device_bytes_.assign(k_, 0);
  device_load_bytes_ = device_host_us_ = device_bytes_;
  double sum = 0;
  for (const uint32_t v : subset) {
    const Choice c = cheapest(v);
    sum += c.score;
    const size_t at = v * k_ + c.device;
    if (c.host_access) {
      device_us_[c.device] += b_.host_time[at];
      device_host_us_[c.device] += b_.host_time[at];
    } else {
      device_us_[c.device] += b_.has_host_access() ? b_.loaded_time[at] : b_.time[at];
      device_load_bytes_[c.device] += b_.load_share[at];
      device_bytes_[c.device] += b_.param_share[v];
    }
  }
  return sum - memory_discount();
}

void AreaBound::resource_loads() {
  loads_.assign(y_.size(), 0);
  for (size_t r = 0; r < compute_.size(); ++r) {
    for (const uint32_t i : compute_[r]) loads_[r] += device_us_[i];
  }
  for (size_t r = 0; r < num_load_; ++r) {
    for (const uint32_t i : load_users_[r])
      loads_[compute_.size() + r] += device_load_bytes_[i] * b_.loads[i].us_per_byte;
  }
  for (uint32_t i = 0; i < k_; ++i) {
    for (const uint32_t r : b_.host_resources[i]) loads_[compute_.size() + r] += device_host_us_[i];
  }
  for (size_t p = 0; p < pools_.size(); ++p) {
    for (const uint32_t i : pools_[p].devices) {
      loads_[compute_.size() + num_load_ + p] += device_bytes_[i] * scale_ / pools_[p].bytes;
    }
  }
}

// Multiplicative weights: a resource that the cheapest assignment overloads becomes more expensive. Any
// multipliers are a proof, so steps may be large; when nothing improves, steps shrink and the search restarts
// at the best point.
double AreaBound::improve(const std::vector<uint32_t>& subset, int rounds, const Deadline& deadline) {
  constexpr double kFirstStep = 1.0, kShrink = 0.75, kLeastStep = 1e-5;
  constexpr int kPatience = 4;
  if (subset.empty()) return 0;
  spread_weights();
  std::vector<double> best_y = y_;
  double best = 0, best_scale = scale_, step = kFirstStep;
  int since = 0;
  for (int round = 0; round < rounds && step > kLeastStep; ++round) {
    if (round > 0 && deadline.should_stop()) break;
    spread_weights();
    const double value = evaluate(subset);
    if (value > best) {
      since = value > best * (1 + 1e-7) ? 0 : since + 1;
      best = value;
      best_y = y_;
      best_scale = scale_;
      if (!pools_.empty()) scale_ = best;
    } else {
      ++since;
    }
    resource_loads();
    const double most = *std::max_element(loads_.begin(), loads_.end());
    if (!(most > 0) || !std::isfinite(most)) break;
    if (since >= kPatience) {
      step *= kShrink;
      since = 0;
      y_ = best_y;
      spread_weights();
      evaluate(subset);
      resource_loads();
    }
    // Memory pools may be full but not overfull: they are compared with T^, times with the best bound.
    const double level = std::max(best, 1e-300);
    for (size_t r = 0; r < y_.size(); ++r) {
      const double excess = std::clamp(loads_[r] / level - 1, -1.0, 4.0);
      y_[r] = std::max(y_[r] * std::exp(step * excess), 1e-12);
    }
  }
  y_ = std::move(best_y);
  scale_ = best_scale;
  spread_weights();
  return best;
}

}  // namespace heddle
