// Sequential: every op by itself, in the order of priority indicators, on the one device where that takes the
// least time. HIOS, section V-B (sequential scheduling). O(ops * devices).
#include "hios.h"
#include "stage_planner.h"

namespace heddle {
namespace {

Result<StageSchedule> sequential(const StageInstance& instance, const Deadline&) {
  double least = kNoTime;
  uint32_t best = kUnmapped;
  for (uint32_t d = 0; d < instance.num_devices(); ++d) {
    double us = 0;
    for (size_t v = 0; v < instance.num_ops(); ++v) us += instance.us(v, d);
    if (us < least) {
      least = us;
      best = d;
    }
  }
  if (best == kUnmapped) return no_stage_plan();
  return stages_in_order(instance, hios_priorities(instance).order,
                         std::vector<uint32_t>(instance.num_ops(), best));
}

}  // namespace

PlannerEntry sequential_planner() {
  return {{.name = "sequential",
           .description = "every op by itself on the one device that takes the least time",
           .source = "HIOS, section V-B",
           .objectives = {Objective::kLatency},
           .exploits = "unequal devices",
           .ignores = "all other devices, stages, memory limits"},
          [](const Problem& problem, const PlannerOptions& options) {
            return plan_stages(problem, options, "sequential", sequential);
          }};
}

}  // namespace heddle
