// The best single device: DiviML's "best device" (section V-B), SortingHat's "single device" baseline.
//
// Minimises the objective over plans that use one device. As one segment where the cost table knows the whole
// model as one; else op by op. O(devices * (V + E)). Exploits measured whole-model segments; ignores
// everything else.
#include "candidates.h"
#include "planners.h"

namespace heddle {
namespace {

class SingleDevice final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    std::vector<OpId> all;
    for (size_t v = 0; v < problem.graph->num_ops(); ++v) all.emplace_back(v);
    BestPlan best(problem);
    StopReason stop = StopReason::kFinished;
    for (const auto d : problem.usable_devices()) {
      if (best.found() && options.deadline.should_stop()) {
        stop = options.deadline.cancelled() ? StopReason::kCancelled : StopReason::kTimeLimit;
        break;
      }
      const auto& name = problem.cluster->device(d).name;
      if (problem.costs->knows_segment(all, d))
        best.offer(all_on(problem, d, true), "all on " + name + " as one segment");
      best.offer(all_on(problem, d, false), "all on " + name);
    }
    return best.output(stop);
  }
};

}  // namespace

std::unique_ptr<Planner> make_single_device() { return std::make_unique<SingleDevice>(); }

}  // namespace heddle
