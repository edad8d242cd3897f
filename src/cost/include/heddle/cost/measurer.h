// Interface through which cost/ requests measurements; runtime/ implements it.
#pragma once

#include <span>

#include "heddle/base/cancel.h"
#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"

namespace heddle {

struct Measurement {
  double median_us = 0;
  double rel_spread = 0;
  int runs = 0;
};

class SegmentMeasurer {
 public:
  virtual ~SegmentMeasurer() = default;
  // True if this device can be measured here. No side effects.
  virtual bool supports(const Device& device) const = 0;
  // Compiles the segment (ops of the model's finest graph, ascending) for the device, warms up and times it.
  virtual Result<Measurement> measure(std::span<const OpId> finest_ops, const Device& device,
                                      const Deadline& deadline) = 0;
};

}  // namespace heddle
