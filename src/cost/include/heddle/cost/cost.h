// A time with its origin, and the dense table that planners and the evaluator read.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/ids.h"

namespace heddle {

inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Where a number comes from, most trusted first.
enum class Origin : uint8_t {
  kMeasured,      // on this device class, on this machine
  kGiven,         // in the graph file (generators, public data sets)
  kInterpolated,  // between measured batch sizes or shares
  kScaled,        // measured elsewhere, scaled to this device
  kEstimated,     // roofline
};
const char* origin_name(Origin origin);

struct Cost {
  double us = kImpossible;  // kImpossible: the device cannot run it
  Origin origin = Origin::kEstimated;
  double rel_spread = 0;  // half the interquartile range over the median; 0 when not measured
};

// The time of a whole segment where it is known better than as the sum of its ops' times.
struct SegmentCost {
  std::vector<OpId> ops;  // ascending
  DeviceId device;
  Cost cost;
};

// Times of every op on every device at one batch size and share, plus known segments. By definition of the
// problem a segment that is not among them takes the sum of its ops' times.
class CostTable {
 public:
  CostTable(size_t num_ops, size_t num_devices)
      : num_devices_(num_devices), us_(num_ops * num_devices, kImpossible), info_(num_ops * num_devices) {}

  size_t num_ops() const { return num_devices_ ? us_.size() / num_devices_ : 0; }
  size_t num_devices() const { return num_devices_; }

  void set(OpId op, DeviceId device, const Cost& cost);
  double us(OpId op, DeviceId device) const { return us_[op.index() * num_devices_ + device.index()]; }
  std::span<const double> row(OpId op) const {
    return {us_.data() + op.index() * num_devices_, num_devices_};
  }
  Cost at(OpId op, DeviceId device) const;

  // Replaces what was known of the same segment on the same device.
  void set_segment(SegmentCost cost);
  // `ops` ascending. One op: its table entry, unless overridden. O(ops).
  Cost segment(std::span<const OpId> ops, DeviceId device) const;
  bool knows_segment(std::span<const OpId> ops, DeviceId device) const;
  std::span<const SegmentCost> segments() const { return segments_; }

  // Per op and device, a time t' <= us such that any segment costs at least the sum of its ops' t': what
  // lower bounds must use when segments are known to be faster than the sum of their parts (each known
  // segment's time is shared out in proportion; the least over the segments that hold the op). Row-major like
  // the table.
  std::vector<double> bound_times() const;

 private:
  struct Info {
    Origin origin = Origin::kEstimated;
    float rel_spread = 0;
  };
  size_t num_devices_;
  std::vector<double> us_;
  std::vector<Info> info_;
  std::vector<SegmentCost> segments_;
  std::unordered_multimap<uint64_t, uint32_t> segment_index_;  // hash(ops, device) -> index
};

}  // namespace heddle
