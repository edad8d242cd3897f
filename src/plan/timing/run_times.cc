#include "run_times.h"

namespace heddle {

RunTimes::RunTimes(const Problem& problem)
    : problem_(problem), costs_(*problem.costs), known_(problem.graph->num_ops(), 0) {
  for (const SegmentCost& s : costs_.segments()) {
    for (const OpId op : s.ops) known_[op.index()] = 1;
  }
}

double RunTimes::host_access_us(std::span<const OpId> ops, DeviceId device) const {
  double sum = 0;
  for (const OpId op : ops) sum += heddle::host_access_us(problem_, op, device);
  return sum;
}

double RunTimes::slow_us(std::span<const OpId> ops, DeviceId device) const {
  bool any = false;
  for (const OpId op : ops) any = any || known_[op.index()];
  if (any) return costs_.segment(ops, device).us;
  double sum = 0;
  for (const OpId op : ops) sum += costs_.us(op, device);
  return sum;
}

}  // namespace heddle
