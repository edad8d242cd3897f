// MET, minimum execution time (DiviML, section V-B): each op goes to the device that runs it fastest,
// whatever that device has to do already. O(V * devices + E). Ignores transfers and load; respects room for
// parameters.
#include "candidates.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

class Met final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    const PlacementCosts costs(problem);
    ListSchedule schedule(problem, costs, /*insertion=*/false);
    for (const auto op : problem.graph->topological_order()) {
      size_t best = costs.num_devices();
      for (size_t d = 0; d < costs.num_devices(); ++d) {
        if (!schedule.fits(op, d) || schedule.probe(op, d).finish >= kImpossible) continue;
        if (best == costs.num_devices() || costs.us(op, d) < costs.us(op, best)) best = d;
      }
      if (best == costs.num_devices()) return no_room(problem, op);
      schedule.place(op, best);
    }
    BestPlan plan(problem);
    plan.offer(schedule.assignment(), "");
    return plan.output();
  }
};

}  // namespace

std::unique_ptr<Planner> make_met() { return std::make_unique<Met>(); }

}  // namespace heddle
