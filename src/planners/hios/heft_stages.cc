// HEFT with stages: heterogeneous earliest finish time with insertion (Topcuoglu, Hariri and Wu, IEEE TPDS
// 13(3), 2002, section 4.1) followed by HIOS's intra-device step (HIOS, section IV-B, Algorithm 2).
//
// Minimises the makespan of one request. Ops by falling priority indicator, which is the upward rank
// (equation 8), each on the device where it ends first, in a gap where one is long enough (ties: the first
// device). O(ops^2 + edges * devices) and Algorithm 2's time.
#include <algorithm>

#include "hios.h"
#include "lists/list_schedule.h"
#include "stage_planner.h"

namespace heddle {
Result<StageSchedule> heft_inter(const StageInstance& instance, const Deadline& deadline) {
  const HiosPriorities priorities = hios_priorities(instance);
  std::vector<DeviceTimeline> timelines(instance.num_devices());
  std::vector<double> start(instance.num_ops(), 0), finish(instance.num_ops(), 0);
  std::vector<uint32_t> device(instance.num_ops(), kUnmapped);
  for (const uint32_t v : priorities.order) {
    if (deadline.cancelled()) return stage_plan_cancelled();
    DeviceTimeline::TimeSlot first;
    for (uint32_t d = 0; d < instance.num_devices(); ++d) {
      if (instance.us(v, d) == kNoTime) continue;
      double ready = 0;
      for (const auto& in : instance.inputs(v))
        ready = std::max(ready, finish[in.op] + instance.transfer_us(in.bytes, device[in.op], d));
      if (ready == kNoTime) continue;
      const auto slot = timelines[d].find(ready, instance.us(v, d), /*insertion=*/true);
      if (slot.finish >= first.finish) continue;
      first = slot;
      device[v] = d;
    }
    if (!first.possible()) return no_stage_plan();
    timelines[device[v]].take(first);
    start[v] = first.start;
    finish[v] = first.finish;
  }
  std::vector<uint32_t> order = priorities.order;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return start[a] != start[b] ? start[a] < start[b] : finish[a] < finish[b];
  });
  StageSchedule schedule;
  schedule.devices.resize(instance.num_devices());
  for (const uint32_t v : order) schedule.devices[device[v]].push_back({v});
  return schedule;
}

PlannerEntry heft_stages_planner() {
  return {{.name = "heft-stages",
           .description = "HEFT with insertion, then stages by HIOS's sliding window",
           .source = "Topcuoglu et al., TPDS 2002, section 4.1; HIOS, section IV-B, Algorithm 2",
           .objectives = {Objective::kLatency},
           .exploits = "stages, transfer times, unequal devices",
           .ignores = "contention, memory limits",
           .settings = {stages_setting()}},
          [](const Problem& problem, const PlannerOptions& options) {
            return plan_mapping(problem, options, "heft-stages", heft_inter);
          }};
}

}  // namespace heddle
