// Minimum Execution Time: DiviML's baseline "MET" (section V-B): each op on the device that runs it fastest,
// however many ops wait there.
//
// Minimises nothing but each op's own time. O(V k + E). Exploits unequal devices and memory limits; ignores
// transfers, loads, contention and how busy a device is. Ties go to the first device.
#include "construction.h"

namespace heddle {
namespace {

ListDecisions on_fastest_device(const FlatProblem& flat) {
  return {topological_list(flat), [&flat](uint32_t v, const auto& slots) {
            int32_t best = -1;
            for (size_t i = 0; i < slots.size(); ++i) {
              if (!slots[i].possible()) continue;
              if (best < 0 || flat.us(v, i) < flat.us(v, static_cast<size_t>(best)))
                best = static_cast<int32_t>(i);
            }
            return best;
          }};
}

Result<PlannerOutput> plan_met(const Problem& problem, const PlannerOptions& options) {
  return plan_by_list(
      problem, options, "met",
      {.list = {.insertion = false}, .decide = on_fastest_device, .batched = BatchRule::kMet});
}

}  // namespace

PlannerEntry met_planner() {
  return {{.name = "met",
           .description = "each op on the device that runs it fastest",
           .source = "DiviML, section V-B (MET)",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "unequal devices, memory limits",
           .ignores = "transfers, loads, how busy a device is"},
          plan_met};
}

}  // namespace heddle
