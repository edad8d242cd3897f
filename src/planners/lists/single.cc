// Best single device: the whole model on one device, the one with the best value.
//
// Minimises the objective over k plans, 2 k where the time of the whole model as one segment is known. O(k (V
// + E)). Exploits known segments; ignores all devices but one.
#include "construction.h"
#include "diviml/batched_list.h"
#include "whole_model.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_single(const Problem& problem, const PlannerOptions& options) {
  if (auto batched = plan_batched(problem, options, "single", BatchRule::kSingle)) return std::move(*batched);
  PlanStore candidates(problem);
  const auto devices = problem.usable_devices();
  for (size_t i = 0; i < devices.size() && !options.deadline.cancelled(); ++i) {
    for (const Assignment& a : whole_model_on(problem, devices[i])) {
      candidates.offer(a, problem.cluster->device(devices[i]).name);
    }
    report_progress(options, "planner single", static_cast<double>(i + 1),
                    static_cast<double>(devices.size()));
  }
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry single_planner() {
  return {{.name = "single",
           .description = "the whole model on the best single device",
           .source = "baseline of all five papers",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "known time of the whole model as one segment",
           .ignores = "all other devices"},
          plan_single};
}

}  // namespace heddle
