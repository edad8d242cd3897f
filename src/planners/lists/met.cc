// Minimum Execution Time: DiviML's baseline "MET" (section V-B): each op on the device that runs it fastest,
// whatever waits there.
//
// Minimises nothing but each op's own time. O(V k + E). Exploits unequal devices and memory limits; ignores
// transfers, loads, contention and how busy a device is. Ties go to the first device.
#include "construction.h"
#include "diviml/batched_list.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_met(const Problem& problem, const PlannerOptions& options) {
  if (auto batched = plan_batched(problem, options, "met", BatchRule::kMet)) return std::move(*batched);
  return plan_by_construction(problem, options, "met", [&](const FlatProblem& flat, const Reserve& reserve) {
    return list_plan(flat, {.insertion = false, .contention = false}, reserve,
                     {flat.topological().begin(), flat.topological().end()}, options.deadline,
                     [&](uint32_t v, const auto& slots) {
                       int32_t best = -1;
                       for (size_t i = 0; i < slots.size(); ++i) {
                         if (!slots[i].possible()) continue;
                         if (best < 0 || flat.us(v, i) < flat.us(v, static_cast<size_t>(best)))
                           best = static_cast<int32_t>(i);
                       }
                       return best;
                     });
  });
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
