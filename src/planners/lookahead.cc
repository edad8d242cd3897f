// PEFT, predict earliest finish time (Arabnejad and Barbosa, "List Scheduling Algorithm for Heterogeneous
// Systems by an Optimistic Cost Table", 2014): a list scheduler that looks ahead to the sinks.
//
// OCT(v, d), their equation 2: the time that remains after v on d if every later op runs on its best device.
// Priority: its mean over devices. Each op takes the device with the least finish + OCT (their equation 5).
// O((V + E) * devices^2). Exploits the future of each choice; ignores contention and load in that future.
#include <algorithm>

#include "candidates.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

class Lookahead final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    const PlacementCosts costs(problem);
    const auto oct = optimistic_costs(problem, costs);
    const auto devices = costs.num_devices();
    std::vector<double> priority(problem.graph->num_ops(), 0);
    for (size_t v = 0; v < priority.size(); ++v) priority[v] = mean_finite(&oct[v * devices], devices);
    ListSchedule schedule(problem, costs, /*insertion=*/true);
    for (const auto op : priority_order(*problem.graph, priority)) {
      size_t best = devices;
      Slot slot;
      double least = kImpossible;
      for (size_t d = 0; d < devices; ++d) {
        if (!schedule.fits(op, d)) continue;
        const auto s = schedule.probe(op, d);
        const double predicted = s.finish + oct[op.index() * devices + d];
        if (predicted < least || (best == devices && s.finish < kImpossible)) {
          least = predicted;
          slot = s;
          best = d;
        }
      }
      if (best == devices) return no_room(problem, op);
      schedule.place(op, best, slot);
    }
    BestPlan plan(problem);
    plan.offer(schedule.assignment(), "");
    return plan.output();
  }

 private:
  static double mean_finite(const double* values, size_t n) {
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < n; ++i) {
      if (values[i] < kImpossible) {
        sum += values[i];
        ++count;
      }
    }
    return count ? sum / count : 0;
  }

  static std::vector<double> optimistic_costs(const Problem& problem, const PlacementCosts& costs) {
    const auto& graph = *problem.graph;
    const auto devices = costs.num_devices();
    std::vector<double> oct(graph.num_ops() * devices, 0);
    const auto topo = graph.topological_order();
    for (size_t i = topo.size(); i-- > 0;) {
      const auto v = topo[i];
      for (const auto& e : graph.out_edges(v)) {
        for (size_t d = 0; d < devices; ++d) {
          double least = kImpossible;
          for (size_t w = 0; w < devices; ++w) {
            const double move = w == d ? 0 : costs.transfer_us(d, w, e.bytes);
            least = std::min(least, oct[e.dst.index() * devices + w] + costs.us(e.dst, w) + move);
          }
          auto& value = oct[v.index() * devices + d];
          value = std::max(value, least);
        }
      }
    }
    return oct;
  }
};

}  // namespace

std::unique_ptr<Planner> make_lookahead() { return std::make_unique<Lookahead>(); }

}  // namespace heddle
