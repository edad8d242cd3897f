// Transfers within runs (Transfers::kWithinRuns): how long a run moves tensors to and from host memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/plan/flat_graph.h"
#include "heddle/plan/problem.h"

namespace heddle {

class RunMoves {
 public:
  // Both must outlive this.
  RunMoves(const Problem& problem, const FlatGraph& flat)
      : problem_(problem),
        flat_(flat),
        is_used_(problem.execution.transfers == Transfers::kWithinRuns),
        per_device_(problem.objective == Objective::kThroughput) {}

  // False: runs move nothing, and the rest of this class is not used.
  bool is_used() const { return is_used_; }

  // Before the first run of a plan.
  void restart() {
    first_.assign(problem_.graph->num_tensors(), -1);
    arrivals_.clear();
  }

  // The next run in the plan's order: segment `self` on `device`. `segment_of(op)` is the segment of an op,
  // `device_of(segment)` its device.
  template <class SegmentOf, class DeviceOf>
  double us(std::span<const OpId> ops, int32_t self, DeviceId device, SegmentOf segment_of,
            DeviceOf device_of) {
    if (!problem_.moves_tensors(device)) return 0;
    const auto is_inside = [&](size_t op) {
      const int32_t segment = segment_of(op);
      return segment == self || (per_device_ && device_of(segment) == device);
    };
    const auto& times = problem_.transfers->us;
    double sum = 0;
    for (const OpId op : ops) {
      for (const uint32_t t : flat_.inputs(op.index())) {
        const bool is_made_here = is_inside(static_cast<size_t>(flat_.producer(t)));
        if (!is_made_here && arrives(t, per_device_ ? device.value : self)) sum += times[t];
      }
      for (const uint32_t t : flat_.outputs(op.index())) {
        bool leaves = false;
        for (const OpId reader : problem_.graph->tensor(TensorId(size_t{t})).consumers)
          leaves = leaves || !is_inside(reader.index());
        if (leaves) sum += times[t];
      }
    }
    return sum;
  }

 private:
  // A segment, or a device under the throughput objective, that has moved a tensor in.
  struct Arrival {
    int32_t next, place;
  };

  // True the first time.
  bool arrives(uint32_t tensor, int32_t place) {
    for (int32_t i = first_[tensor]; i >= 0; i = arrivals_[static_cast<size_t>(i)].next) {
      if (arrivals_[static_cast<size_t>(i)].place == place) return false;
    }
    arrivals_.push_back({first_[tensor], place});
    first_[tensor] = static_cast<int32_t>(arrivals_.size()) - 1;
    return true;
  }

  const Problem& problem_;
  const FlatGraph& flat_;
  const bool is_used_, per_device_;
  std::vector<int32_t> first_;  // per tensor, into arrivals_
  std::vector<Arrival> arrivals_;
};

}  // namespace heddle
