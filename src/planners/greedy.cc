// Greedy earliest finish (DiviML, section V-B): ops in topological order, each to the device on which it
// finishes first given what was placed before. O((V + E) * devices). Exploits transfer times, without
// contention; no look ahead.
#include "candidates.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

class Greedy final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    const PlacementCosts costs(problem);
    ListSchedule schedule(problem, costs, /*insertion=*/false);
    for (const auto op : problem.graph->topological_order()) {
      size_t best = costs.num_devices();
      Slot slot;
      for (size_t d = 0; d < costs.num_devices(); ++d) {
        if (!schedule.fits(op, d)) continue;
        const auto s = schedule.probe(op, d);
        if (s.finish < slot.finish) {
          slot = s;
          best = d;
        }
      }
      if (best == costs.num_devices()) return no_room(problem, op);
      schedule.place(op, best, slot);
    }
    BestPlan plan(problem);
    plan.offer(schedule.assignment(), "");
    return plan.output();
  }
};

}  // namespace

std::unique_ptr<Planner> make_greedy() { return std::make_unique<Greedy>(); }

}  // namespace heddle
