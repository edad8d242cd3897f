// What list planners ask again and again, in flat arrays: op times, transfer times, which devices exclude
// each other.
#pragma once

#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// Devices are numbered by their place among the problem's usable devices. O(devices^2 + ops * devices).
class PlacementCosts {
 public:
  explicit PlacementCosts(const Problem& problem);

  size_t num_devices() const { return devices_.size(); }
  DeviceId device(size_t d) const { return devices_[d]; }
  double us(OpId op, size_t d) const { return us_[op.index() * devices_.size() + d]; }
  // Mean over the devices that can run it; what HEFT's ranks use.
  double mean_us(OpId op) const { return mean_us_[op.index()]; }
  double transfer_us(size_t from, size_t to, int64_t bytes) const {
    const auto& r = rates_[from * devices_.size() + to];
    return r.fixed_us + r.us_per_byte * static_cast<double>(bytes);
  }
  // Mean over all ordered pairs of different devices between which there is a way.
  double mean_transfer_us(int64_t bytes) const {
    return mean_fixed_us_ + mean_us_per_byte_ * static_cast<double>(bytes);
  }
  // Exclusive resources: one per core that devices share, else one per device.
  const std::vector<int>& resources(size_t d) const { return resources_[d]; }
  int num_resources() const { return num_resources_; }

  // Parameters and memory: which pool a device is in, what the pool may hold (0: no limit), less what
  // activations need.
  int pool(size_t d) const { return pool_[d]; }
  int64_t param_room(int pool) const { return param_room_[static_cast<size_t>(pool)]; }
  size_t num_pools() const { return param_room_.size(); }
  // Time to load a byte of parameters, 0 where they need no load.
  double load_us_per_byte(size_t d) const { return load_us_per_byte_[d]; }

 private:
  struct Rate {
    double fixed_us = 0, us_per_byte = 0;
  };
  void fill_times(const Problem& problem);
  void fill_transfers(const Problem& problem);
  void fill_resources(const Problem& problem);
  void fill_memory(const Problem& problem);
  std::vector<DeviceId> devices_;
  std::vector<double> us_, mean_us_, load_us_per_byte_;
  std::vector<Rate> rates_;
  double mean_fixed_us_ = 0, mean_us_per_byte_ = 0;
  std::vector<std::vector<int>> resources_;
  int num_resources_ = 0;
  std::vector<int> pool_;
  std::vector<int64_t> param_room_;
};

}  // namespace heddle
