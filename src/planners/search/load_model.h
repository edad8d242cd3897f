// What each resource has to do per request when one lane serves all of them: the throughput objective is the
// largest of these loads, whatever the order.
#pragma once

#include <vector>

#include "core/flat_problem.h"
#include "core/param_use.h"

namespace heddle {

class LoadModel {
 public:
  // All ops start on no device.
  explicit LoadModel(const FlatProblem& flat);

  // Moves the op, with its transfers, to a device, or to none (-1). Devices must be able to exchange data:
  // see possible().
  void put(uint32_t op, int32_t device);
  int32_t device(uint32_t op) const { return device_[op]; }
  // Can the op run there, and exchange data with its neighbours that are placed?
  bool possible(uint32_t op, uint32_t device) const;

  double period_us() const;  // O(resources)
  double load_us(uint32_t device) const { return load_[device]; }
  // All loads: the devices', those of core groups and those of the transfers' resources.
  const std::vector<double>& loads() const { return load_; }
  size_t of_group(size_t group) const { return groups_at_ + group; }
  size_t of_resource(size_t resource) const { return resources_at_ + resource; }
  std::span<const uint32_t> groups_of(size_t device) const { return groups_of_[device]; }
  // The device with the largest load.
  uint32_t busiest() const;
  // (sum of load^8)^(1/8): close to the largest load, but it also sees the others. O(1).
  double norm_us() const;
  // Adds up anew, against rounding.
  void refresh();

 private:
  void add(size_t resource, double us);
  void add_way(const RoutedTransfer& way, double us);
  void count_reader(uint32_t tensor, uint32_t device, int by);
  void move_outputs(uint32_t op, uint32_t from, double sign);

  const FlatProblem& flat_;
  const size_t groups_at_, resources_at_;
  std::vector<int32_t> device_;
  std::vector<int32_t> readers_;                  // tensor x device: readers there
  std::vector<double> load_;                      // devices, core groups, transfer resources
  std::vector<std::vector<uint32_t>> groups_of_;  // per device
  double scale_ = 1, powers_ = 0;                 // sum of (load / scale)^8
};

}  // namespace heddle
