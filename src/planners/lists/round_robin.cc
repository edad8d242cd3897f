// Round robin: ops are dealt to the devices in turn, in topological order. The baseline that knows nothing.
//
// Minimises nothing. O(V + E). Skips devices that cannot run an op or are full; ignores times, transfers and
// loads.
#include "construction.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_round_robin(const Problem& problem, const PlannerOptions& options) {
  return plan_by_construction(
      problem, options, "round-robin", [&](const FlatProblem& flat, const Reserve& reserve) {
        size_t turn = 0;
        return list_plan(flat, {.insertion = false, .contention = false}, reserve,
                         {flat.topological().begin(), flat.topological().end()}, options.deadline,
                         [&](uint32_t, const auto& slots) -> int32_t {
                           for (size_t tried = 0; tried < slots.size(); ++tried) {
                             const size_t i = (turn + tried) % slots.size();
                             if (!slots[i].possible()) continue;
                             turn = i + 1;
                             return static_cast<int32_t>(i);
                           }
                           return -1;
                         });
      });
}

}  // namespace

PlannerEntry round_robin_planner() {
  return {{.name = "round-robin",
           .description = "ops dealt to the devices in turn",
           .source = "baseline",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "memory limits",
           .ignores = "times, transfers, loads"},
          plan_round_robin};
}

}  // namespace heddle
