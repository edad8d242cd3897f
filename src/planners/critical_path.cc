// Critical path on one device: CPOP (Topcuoglu, Hariri and Wu 2002, section 4.2). SortingHat's "critical
// path" baseline is the length of that path, a theoretical value (section 6, Figure 9); here it is a plan
// that realises the idea.
//
// Priorities: upward plus downward rank. The ops of a heaviest path all go to the one device that runs the
// path fastest, each other op to where it finishes first, gaps included. O((V + E) * devices). Ignores
// contention.
#include <algorithm>

#include "candidates.h"
#include "heddle/graph/analysis.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

class CriticalPath final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    const PlacementCosts costs(problem);
    const auto& graph = *problem.graph;
    const auto paths = longest_paths(
        graph, [&](OpId v) { return costs.mean_us(v); },
        [&](const Edge& e) { return costs.mean_transfer_us(e.bytes); });
    std::vector<bool> critical(graph.num_ops(), false);
    for (const auto v : paths.path) critical[v.index()] = true;
    const auto device = path_device(costs, paths.path);
    std::vector<double> priority(graph.num_ops());
    for (size_t v = 0; v < priority.size(); ++v) priority[v] = paths.longest_to[v] + paths.longest_from[v];
    ListSchedule schedule(problem, costs, /*insertion=*/true);
    for (const auto op : priority_order(graph, priority)) {
      size_t best = costs.num_devices();
      Slot slot;
      for (size_t d = 0; d < costs.num_devices(); ++d) {
        if (!schedule.fits(op, d)) continue;
        const auto s = schedule.probe(op, d);
        // A critical op leaves its device only where that has no room.
        const bool home = critical[op.index()] && d == device && s.finish < kImpossible;
        if (home || s.finish < slot.finish) {
          slot = s;
          best = d;
        }
        if (home) break;
      }
      if (best == costs.num_devices()) return no_room(problem, op);
      schedule.place(op, best, slot);
    }
    BestPlan plan(problem);
    plan.offer(schedule.assignment(), "");
    return plan.output();
  }

 private:
  static size_t path_device(const PlacementCosts& costs, const std::vector<OpId>& path) {
    size_t best = 0;
    double least = kImpossible;
    for (size_t d = 0; d < costs.num_devices(); ++d) {
      double sum = 0;
      for (const auto v : path) sum += costs.us(v, d);
      if (sum < least) {
        least = sum;
        best = d;
      }
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Planner> make_critical_path() { return std::make_unique<CriticalPath>(); }

}  // namespace heddle
