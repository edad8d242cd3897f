// The graph in flat arrays for timing. Lists per op the distinct tensors read (without graph inputs), the
// tensors made, and the parameters with bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/problem.h"

namespace heddle {

// Saturating sum: sizes come from files and may overflow int64.
inline int64_t add_bytes(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

class FlatGraph {
 public:
  explicit FlatGraph(const Graph& graph);

  std::span<const uint32_t> inputs(size_t op) const { return slice(inputs_, input_begin_, op); }
  std::span<const uint32_t> outputs(size_t op) const { return slice(outputs_, output_begin_, op); }
  std::span<const uint32_t> params(size_t op) const { return slice(params_, param_begin_, op); }
  int32_t producer(size_t tensor) const { return producer_[tensor]; }
  int64_t bytes(size_t tensor) const { return bytes_[tensor]; }

 private:
  static std::span<const uint32_t> slice(const std::vector<uint32_t>& v, const std::vector<uint32_t>& begin,
                                         size_t i) {
    return std::span<const uint32_t>(v).subspan(begin[i], begin[i + 1] - begin[i]);
  }
  std::vector<uint32_t> input_begin_, inputs_, output_begin_, outputs_, param_begin_, params_;
  std::vector<int32_t> producer_;
  std::vector<int64_t> bytes_;
};

// Times of segments. Ops that are in no segment of known cost take a fast path without look-ups.
class RunTimes {
 public:
  explicit RunTimes(const Problem& problem);  // `problem` must outlive this
  double us(std::span<const OpId> ops, DeviceId device) const {
    if (ops.size() == 1 && !known_[ops[0].index()]) return costs_.us(ops[0], device);
    return slow_us(ops, device);
  }
  // With direct host access; kImpossible if not possible.
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
  std::vector<uint8_t> known_;  // per op: is it in a segment of known cost?
};

}  // namespace heddle
