// Round robin: op i of the topological order goes to device i modulo the number of devices, or to the next
// that can run it and has room for its parameters. What a planner must beat. O(V * devices + E). Ignores all
// costs.
#include "candidates.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

class RoundRobin final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    const PlacementCosts costs(problem);
    ListSchedule schedule(problem, costs, /*insertion=*/false);
    size_t next = 0;
    for (const auto op : problem.graph->topological_order()) {
      size_t tried = 0;
      while (tried < costs.num_devices() &&
             (!schedule.fits(op, next) || schedule.probe(op, next).finish >= kImpossible)) {
        next = (next + 1) % costs.num_devices();
        ++tried;
      }
      if (tried == costs.num_devices()) return no_room(problem, op);
      schedule.place(op, next);
      next = (next + 1) % costs.num_devices();
    }
    auto assignment = schedule.assignment();
    const auto topo = problem.graph->topological_order();
    assignment.order.assign(topo.begin(), topo.end());
    BestPlan best(problem);
    best.offer(assignment, "");
    return best.output();
  }
};

}  // namespace

std::unique_ptr<Planner> make_round_robin() { return std::make_unique<RoundRobin>(); }

}  // namespace heddle
