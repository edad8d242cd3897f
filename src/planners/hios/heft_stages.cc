// HEFT with stages: heterogeneous earliest finish time with insertion (Topcuoglu, Hariri and Wu, IEEE TPDS
// 13(3), 2002, section 4.1) followed by HIOS's intra-device step (HIOS, section IV-B, Algorithm 2).
//
// Minimises the makespan of one request. Ops by falling priority indicator, which is the upward rank
// (equation 8), each on the device where it ends first, in a gap where one is long enough (ties: the first
// device). O(ops^2 + edges * devices) and Algorithm 2's time.
#include <algorithm>

#include "hios.h"
#include "stage_planner.h"

namespace heddle {
namespace {

struct Slot {
  double start, end;
  uint32_t op;
};

// Where an op of this length that is ready then goes: the index in the device's slots, and its start.
std::pair<size_t, double> earliest_gap(const std::vector<Slot>& slots, double ready, double us) {
  // Gaps behind slots that end before the op is ready are all too early.
  const auto from = std::lower_bound(slots.begin(), slots.end(), ready,
                                     [](const Slot& s, double at) { return s.end < at; });
  double start = from == slots.begin() ? ready : std::max(ready, std::prev(from)->end);
  auto at = from;
  for (; at != slots.end() && start + us > at->start; ++at) start = std::max(ready, at->end);
  return {static_cast<size_t>(at - slots.begin()), start};
}

}  // namespace

Result<StageSchedule> heft_inter(const StageInstance& instance, const Deadline& deadline) {
  const HiosPriorities priorities = hios_priorities(instance);
  std::vector<std::vector<Slot>> slots(instance.num_devices());
  std::vector<double> finish(instance.num_ops(), 0);
  std::vector<uint32_t> device(instance.num_ops(), kUnmapped);
  for (const uint32_t v : priorities.order) {
    if (deadline.cancelled())
      return Error(Code::kCancelled, "planning was cancelled before there was a plan");
    double first = kNoTime;
    std::pair<size_t, double> where;
    for (uint32_t d = 0; d < instance.num_devices(); ++d) {
      if (instance.us(v, d) == kNoTime) continue;
      double ready = 0;
      for (const auto& in : instance.inputs(v))
        ready = std::max(ready, finish[in.op] + instance.transfer_us(in.bytes, device[in.op], d));
      if (ready == kNoTime) continue;
      const auto gap = earliest_gap(slots[d], ready, instance.us(v, d));
      const double end = gap.second + instance.us(v, d);
      if (end >= first) continue;
      first = end;
      device[v] = d;
      where = gap;
    }
    if (first == kNoTime) return no_stage_plan();
    finish[v] = first;
    auto& list = slots[device[v]];
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(where.first), {where.second, first, v});
  }
  StageSchedule schedule;
  schedule.devices.resize(instance.num_devices());
  for (size_t d = 0; d < slots.size(); ++d) {
    for (const Slot& slot : slots[d]) schedule.devices[d].push_back({slot.op});
  }
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
