#include "whole_model.h"

#include <algorithm>

namespace heddle {
namespace {

struct Times {
  double op_by_op = 0, together = kImpossible;
};

Times times_on(const Problem& problem, DeviceId device) {
  Times times;
  std::vector<OpId> ops;
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    ops.emplace_back(v);
    times.op_by_op += problem.costs->segment(std::span(&ops.back(), 1), device).us;
  }
  if (ops.size() > 1 && problem.costs->knows_segment(ops, device))
    times.together = problem.costs->segment(ops, device).us;
  return times;
}

}  // namespace

std::vector<Assignment> whole_model_on(const Problem& problem, DeviceId device) {
  const Times times = times_on(problem, device);
  std::vector<Assignment> result;
  Assignment a;
  a.device.assign(problem.graph->num_ops(), device);
  a.order.assign(problem.graph->topological_order().begin(), problem.graph->topological_order().end());
  if (times.op_by_op < kImpossible) result.push_back(a);
  if (times.together < kImpossible) {
    a.segment.assign(problem.graph->num_ops(), 0);
    result.push_back(std::move(a));
  }
  if (result.size() == 2 && times.together <= times.op_by_op) std::swap(result[0], result[1]);
  return result;
}

double whole_model_us(const Problem& problem, DeviceId device) {
  const Times times = times_on(problem, device);
  return std::min(times.op_by_op, times.together);
}

}  // namespace heddle
