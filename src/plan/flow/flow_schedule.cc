// The evaluator of flow workloads: from decisions to start times.
#include <algorithm>

#include "heddle/plan/flow_workload.h"

namespace heddle {
namespace {

Status well_formed(const FlowWorkload& w, const FlowDecisions& d) {
  const auto bad = [&](const std::string& what) {
    return Error(Code::kInvalidInput, "workload '" + w.name + "': " + what);
  };
  if (d.device.size() != w.num_ops() || d.order.size() != w.num_tasks())
    return bad("the decisions name " + std::to_string(d.device.size()) + " devices and " +
               std::to_string(d.order.size()) + " tasks; expected " + std::to_string(w.num_ops()) + " and " +
               std::to_string(w.num_tasks()));
  for (const uint32_t k : d.device) {
    if (k >= w.num_devices()) return bad("there is no device " + std::to_string(k));
  }
  std::vector<uint32_t> place(w.num_tasks(), UINT32_MAX);
  for (uint32_t i = 0; i < d.order.size(); ++i) {
    if (d.order[i] >= w.num_tasks() || place[d.order[i]] != UINT32_MAX)
      return bad("task " + std::to_string(d.order[i]) + " is not one of the workload, or is ordered twice");
    place[d.order[i]] = i;
  }
  for (size_t q = 0; q < w.num_flows(); ++q) {
    const uint32_t at = place[w.num_ops() + q];
    if (at < place[w.flows[q].from] || at > place[w.flows[q].to])
      return bad("flow " + std::to_string(q) + " does not lie between its ops in the order");
  }
  return {};
}

}  // namespace

Result<FlowSchedule> evaluate_flows(const FlowWorkload& w, const FlowDecisions& d) {
  HEDDLE_RETURN_IF_ERROR(well_formed(w, d));
  const size_t n = w.num_ops();
  FlowSchedule s{d.device, std::vector<int64_t>(n), std::vector<int64_t>(w.num_flows()), 0};
  std::vector<int64_t> ready(n, 0), device_free(w.num_devices(), 0), egress(w.num_devices(), 0),
      ingress(w.num_devices(), 0);
  for (const uint32_t task : d.order) {
    if (task < n) {
      const uint32_t k = d.device[task];
      const int64_t start = std::max(ready[task], device_free[k]);
      s.op_start[task] = start;
      device_free[k] = start + w.ops[task].ticks[k];
      s.makespan = std::max(s.makespan, device_free[k]);
      continue;
    }
    const size_t q = task - n;
    const Flow& f = w.flows[q];
    const uint32_t from = d.device[f.from], to = d.device[f.to];
    int64_t start = s.op_start[f.from] + w.ops[f.from].ticks[from], end = start;
    if (w.crosses(q, from, to)) {
      start = std::max({start, egress[from], ingress[to]});
      end = start + w.flow_ticks(q, from, to);
      egress[from] = ingress[to] = end;
    }
    s.flow_start[q] = start;
    ready[f.to] = std::max(ready[f.to], end);
  }
  return s;
}

}  // namespace heddle
