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
  // Half the interquartile range over the median or, if it is larger, the part of the time for which threads of the
  // program waited for a core: work that is steady beside it slows all runs alike.
  double rel_spread = 0;
  int runs = 0;
  // With MeasureConditions::core_taken: how many times as long the segment takes then, at least 1. 0: not measured.
  double core_taken = 0;
};

// What is else than usual when a segment is measured: the usual is the whole device, with parameters on it.
struct MeasureConditions {
  int share = 1;             // on 1/share of the device, while the other parts are busy with the same work
  bool host_access = false;  // the segment reads its parameters in place, in mapped host memory
  // Devices that are sets of cores: also while another thread keeps one of the cores busy.
  bool core_taken = false;
};

class SegmentMeasurer {
 public:
  virtual ~SegmentMeasurer() = default;
  // Of all its measurements.
  virtual MeasureConditions conditions() const { return {}; }
  // Can this device be measured here? No side effects.
  virtual bool supports(const Device& device) const = 0;
  // Compiles the segment (ops of the model's finest graph, ascending) for the device, warms up and times it.
  virtual Result<Measurement> measure(std::span<const OpId> finest_ops, const Device& device,
                                      const Deadline& deadline) = 0;
};

}  // namespace heddle
