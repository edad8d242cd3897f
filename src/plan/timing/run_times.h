// The times of segments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// Segment times with the common case, ops without any known segment, kept free of look-ups.
class RunTimes {
 public:
  explicit RunTimes(const Problem& problem);  // which must outlive this
  double us(std::span<const OpId> ops, DeviceId device) const {
    if (ops.size() == 1 && !known_[ops[0].index()]) return costs_.us(ops[0], device);
    return slow_us(ops, device);
  }
  // With direct host access; kImpossible where that cannot be.
  double host_access_us(std::span<const OpId> ops, DeviceId device) const;
  StageItem item(std::span<const OpId> ops, DeviceId device) const {
    return costs_.stage_item(ops, device, us(ops, device));
  }
  double stage_us(std::span<const StageItem> items, DeviceId device) const {
    return costs_.stage_model(device).us(items);
  }

 private:
  double slow_us(std::span<const OpId> ops, DeviceId device) const;
  const Problem& problem_;
  const CostTable& costs_;
  std::vector<uint8_t> known_;  // per op: is it in a segment whose time is known?
};

}  // namespace heddle
