// The formulas of fleet_plan.h, written once for evaluator and planners; the checker has its own.
#pragma once

#include <algorithm>
#include <span>

#include "heddle/base/units.h"
#include "heddle/fleet/fleet_plan.h"

namespace heddle {

inline constexpr int kTwelfths = 12;  // of a device; every share 1/1..1/kMaxShare is a whole number of them
static_assert(kTwelfths % 3 == 0 && kTwelfths % 4 == 0 && kMaxShare == 4);

inline int64_t whole_devices(int64_t twelfths) { return (twelfths + kTwelfths - 1) / kTwelfths; }

// infer_k of the blocks [from, to); NaN if a time is missing.
inline double blocks_us(const FleetModel& model, int device_class, int share, int batch, int from, int to) {
  double sum = 0;
  for (int k = from; k < to; ++k) sum += model.block_us(static_cast<size_t>(device_class), share, batch, k);
  return sum;
}

// trans_k: time to move a whole batch's bytes at this cut between servers of the two classes.
inline double transfer_us(const Fleet& fleet, const FleetModel& model, int batch, int cut, int class_a,
                          int class_b) {
  const double nic = std::min(fleet.classes[static_cast<size_t>(class_a)].nic_bytes_per_s,
                              fleet.classes[static_cast<size_t>(class_b)].nic_bytes_per_s);
  return batch * model.cut_bytes[static_cast<size_t>(cut)] / nic * kUsPerSecond;
}

// Bytes/s of one virtual device.
inline double nic_share(const DeviceClass& device_class, int share) {
  return device_class.nic_bytes_per_s / (share * device_class.devices_per_server);
}

// The rate, 1/s, at which a virtual device's NIC brings and takes away the feature maps of the blocks
// [from, to); infinite if none crosses it.
inline double nic_rate(const FleetModel& model, double nic_bytes_per_s, int from, int to) {
  double rate = kInfinity;
  for (const int cut : {from, to}) {
    const double bytes = model.cut_bytes[static_cast<size_t>(cut)];
    if (cut > 0 && cut < model.blocks && bytes > 0) rate = std::min(rate, nic_bytes_per_s / bytes);
  }
  return rate;
}

// X_k of one virtual device whose run of the blocks [from, to) takes `infer_us`.
inline double virtual_device_rate(const FleetModel& model, double nic_bytes_per_s, int batch, int from,
                                  int to, double infer_us) {
  return std::min(kUsPerSecond * batch / infer_us, nic_rate(model, nic_bytes_per_s, from, to));
}

// Cost per hour or watts of one device, depending on the objective; otherwise 0.
double device_cost(const DeviceClass& device_class, FleetObjective objective);

// The objective's value. [model] rates and loads (for kMaxMin the weights), [class] whole devices used.
double fleet_value(const Fleet& fleet, FleetObjective objective, std::span<const double> rates,
                   std::span<const double> loads, std::span<const int64_t> used);
// Is the value `a` better than `b`?
inline bool is_better(FleetObjective objective, double a, double b) {
  return more_is_better(objective) ? a > b : a < b;
}

}  // namespace heddle
