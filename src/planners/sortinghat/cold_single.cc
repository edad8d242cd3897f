// The whole model on one device from a cold start, the baselines of SortingHat (ICS'25), section 4.2: loads
// and runs one after the other (`cold-serial`), and loads that overlap with runs (`cold-single`; SortingHat,
// section 2.1, as PipeSwitch does on one GPU). Neither reads parameters in place nor uses another device.
//
// Minimises the makespan over the k devices. Serial: the model is one segment, which starts when the last of
// its parameters is there. Overlapped: every op is a segment, parameters come in the order of first use. O(k
// (V
// + E) log V). The plans' times are the evaluator's, so that with known segments the serial one may be faster
// than the sum of its ops.
#include "core/plan_store.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_cold_single(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  const auto devices = problem.usable_devices();
  for (size_t i = 0; i < devices.size() && !options.deadline.cancelled(); ++i) {
    Assignment a;
    a.device.assign(problem.graph->num_ops(), devices[i]);
    a.order.assign(problem.graph->topological_order().begin(), problem.graph->topological_order().end());
    if (options.is_set("loads", "first")) a.segment.assign(problem.graph->num_ops(), 0);
    candidates.offer(a, problem.cluster->device(devices[i]).name);
  }
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry cold_single_planner() {
  return {
      {.name = "cold-single",
       .description =
           "the whole model on the best single device, each op as soon as its parameters are there",
       .source = "SortingHat, sections 2.1 and 4.2 (as PipeSwitch)",
       .objectives = {Objective::kColdLatency},
       .exploits = "loads that overlap with runs",
       .ignores = "all other devices",
       .settings = {{"loads", {"overlapped", "first"}, "whether ops run while later parameters are loaded"}},
       .aliases = {{.name = "cold-serial",
                    .settings = {{"loads", "first"}},
                    .description =
                        "the whole model on the best single device: all parameters first, then the ops",
                    .source = "SortingHat, section 4.2 (single GPU)",
                    .exploits = "nothing",
                    .ignores = "all other devices; that loads may overlap with runs"}}},
      plan_cold_single};
}

}  // namespace heddle
