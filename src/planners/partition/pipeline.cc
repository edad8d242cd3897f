// Contiguous pipeline: a topological order is cut into intervals, one a device, for the least largest load.
// Exact in its model by dynamic programming over sets of devices; see pipeline_cuts.h. The idea with all its
// variants: J. M. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators",
// NeurIPS 2020, and D. Narayanan et al., "PipeDream", SOSP 2019, section 3.1.
//
// Minimises the period. O(2^k k^2 V log(1 / precision)) for at most 8 devices, O(k^2 V log(1 / precision))
// beyond, with V capped by a budget. Exploits unequal devices, transfers between neighbours and memory
// limits. Ignores known segments, links that several pairs of devices share, and that a tensor may pass over
// a stage.
#include <algorithm>

#include "lists/construction.h"
#include "pipeline_cuts.h"

namespace heddle {
namespace {

// Depth first from the exits: branches stay together, so that fewer tensors cross a cut.
std::vector<uint32_t> depth_first_order(const FlatProblem& flat) {
  std::vector<uint32_t> order;
  std::vector<uint8_t> seen(flat.num_ops(), 0);
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (const uint32_t exit : flat.topological()) {
    const auto made = flat.outputs(exit);
    if (std::any_of(made.begin(), made.end(), [&](uint32_t t) { return !flat.readers(t).empty(); })) continue;
    stack.push_back({exit, 0});
    seen[exit] = 1;
    while (!stack.empty()) {
      auto& [v, next] = stack.back();
      const auto inputs = flat.inputs(v);
      while (next < inputs.size() && seen[flat.producer(inputs[next])]) ++next;
      if (next < inputs.size()) {
        const uint32_t u = flat.producer(inputs[next]);
        seen[u] = 1;
        stack.push_back({u, 0});
      } else {
        order.push_back(v);
        stack.pop_back();
      }
    }
  }
  return order;
}

// Farthest from the end first: branches go side by side.
std::vector<uint32_t> level_order(const FlatProblem& flat) {
  return order_by_priority(flat, flat.least_remaining_us());
}

Result<PlannerOutput> plan_pipeline(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  const auto offer = [&](auto make_order) {
    offer_constructions(
        problem, options, "pipeline",
        [&](const FlatProblem& flat, const Reserve& reserve) {
          std::optional<FlatPlan> plan;
          const std::vector<uint32_t> order = make_order(flat);
          auto cuts = pipeline_cuts(flat, order, reserve, options.deadline);
          if (cuts) plan = FlatPlan{std::move(cuts->device), order};
          return plan;
        },
        candidates);
  };
  offer([](const FlatProblem& flat) {
    return std::vector<uint32_t>(flat.topological().begin(), flat.topological().end());
  });
  if (!options.deadline.should_stop()) offer(depth_first_order);
  if (!options.deadline.should_stop()) offer(level_order);
  return candidates.output(StopReason::kFinished, options.deadline);
}

}  // namespace

PlannerEntry pipeline_planner() {
  return {{.name = "pipeline",
           .description = "contiguous intervals of the model, one a device, with the least largest load",
           .source = "Tarnawski et al., NeurIPS 2020; PipeDream, SOSP 2019, section 3.1",
           .objectives = {Objective::kThroughput},
           .exploits = "unequal devices, transfers between neighbours, memory limits",
           .ignores = "links that several pairs of devices share, known segments"},
          plan_pipeline};
}

}  // namespace heddle
