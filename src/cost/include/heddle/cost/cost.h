// A time with its origin, and the dense table that planners and the evaluator read.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/cost/stage_model.h"

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
std::optional<Origin> origin_named(std::string_view name);

// Above this spread other work on the machine delayed the measured runs. The spread of calm ones is at most 17 %, that
// of measurements beside busy processes 19 to 280 %, and their medians are up to three times the calm ones.
inline constexpr double kDisturbedSpread = 0.2;

struct Cost {
  double us = kImpossible;  // kImpossible: the device cannot run it
  Origin origin = Origin::kEstimated;
  double rel_spread = 0;  // as in Measurement; 0 when not measured

  // The error band: nine in ten true times are expected between us / factor and us * factor. A measured time has its
  // spread; estimates and scaled times have what comparisons with measurements showed (docs/cost-model.md).
  double error_factor() const;
  bool disturbed() const { return origin == Origin::kMeasured && rel_spread > kDisturbedSpread; }
};

// The time of a whole segment, if it is known better than as the sum of its ops' times.
struct SegmentCost {
  std::vector<OpId> ops;  // ascending
  DeviceId device;
  Cost cost;
};

// Times of every op on every device at one batch size and share, plus known segments. By definition, a
// segment that is not known takes the sum of its ops' times.
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

  // Replaces a known time of the same segment on the same device.
  void set_segment(SegmentCost cost);
  // set() for one op, set_segment() for several.
  void set_ops(std::vector<OpId> ops, DeviceId device, const Cost& cost);
  // `ops` ascending. One op: its table entry, unless overridden. O(ops).
  Cost segment(std::span<const OpId> ops, DeviceId device) const;
  bool knows_segment(std::span<const OpId> ops, DeviceId device) const;
  std::span<const SegmentCost> segments() const { return segments_; }

  // Multiplies all times on the device. O(ops + segments).
  void scale(DeviceId device, double factor);
  // The same times with op i on device[i] only: impossible elsewhere, without the known segments that are elsewhere.
  CostTable placed(std::span<const DeviceId> device) const;
  // The same times without those of forbidden ops: impossible there, as are known segments that hold one.
  CostTable without(const std::function<bool(OpId, DeviceId)>& forbidden) const;

  // For stages: the share of `device` that the op keeps busy while it runs, in [0, 1] (default 1), and how
  // the device runs several segments at once (default: one after another).
  void set_utilization(OpId op, DeviceId device, double utilization);
  double utilization(OpId op, DeviceId device) const {
    return utilization_.empty() ? 1 : utilization_[op.index() * num_devices_ + device.index()];
  }
  bool has_utilizations() const { return !utilization_.empty(); }
  void set_stage_model(DeviceId device, const StageModel& model);
  StageModel stage_model(DeviceId device) const {
    return stage_models_.empty() ? StageModel() : stage_models_[device.index()];
  }
  bool has_stage_models() const { return !stage_models_.empty(); }
  // A segment that takes `us`, as an item of a stage. Its utilization is the mean of its ops', weighted by
  // their times (an op that cannot run alone gets the mean weight of the others). O(ops).
  StageItem stage_item(std::span<const OpId> ops, DeviceId device, double us) const;

  // How many times as long the device's work takes while another process keeps one of its cores busy, at least 1, as
  // measured with the whole model. 0: not measured.
  void set_core_taken(DeviceId device, double factor);
  double core_taken(DeviceId device) const { return core_taken_.empty() ? 0 : core_taken_[device.index()]; }
  bool has_core_taken() const { return !core_taken_.empty(); }

  // Direct host access: the op's time if it reads its parameters in place from host memory instead of the
  // device's (default kImpossible). An op without parameters takes its usual time. A segment takes the sum of
  // its ops' times.
  void set_host_access(OpId op, DeviceId device, double us);
  double host_access_us(OpId op, DeviceId device) const {
    return host_access_.empty() ? kImpossible : host_access_[op.index() * num_devices_ + device.index()];
  }
  bool has_host_access() const { return !host_access_.empty(); }
  void clear_host_access() { host_access_.clear(); }

  // Per op and device, a time t' <= us such that any segment takes at least the sum of its ops' t'. Lower
  // bounds must use these, because known segments may be faster than the sum of their parts. Each known
  // segment's time is distributed over its ops in proportion; t' is the minimum over the segments with the
  // op. Row-major like the table.
  std::vector<double> bound_times() const;
  // The same for a device's work if up to `stage_width` segments run at once: segments that run alone or in
  // stages keep the device busy for at least the sum of their ops' work.
  std::vector<double> bound_work(int stage_width) const;

 private:
  struct Info {
    Origin origin = Origin::kEstimated;
    float rel_spread = 0;
  };
  // The weight of an op that cannot run alone among `ops`: the mean time of those that can.
  double stand_in_us(std::span<const OpId> ops, DeviceId device) const;

  size_t num_devices_;
  std::vector<double> us_;
  std::vector<Info> info_;
  std::vector<double> utilization_;       // op x device; empty: all 1
  std::vector<double> host_access_;       // op x device; empty: impossible everywhere
  std::vector<StageModel> stage_models_;  // per device; empty: all one after another
  std::vector<double> core_taken_;        // per device; empty: none was measured
  std::vector<SegmentCost> segments_;
  std::unordered_multimap<uint64_t, uint32_t> segment_index_;  // hash(ops, device) -> index
};

}  // namespace heddle
