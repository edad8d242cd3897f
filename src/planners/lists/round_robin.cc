// Round robin: ops are dealt to the devices in turn, in topological order. The weakest baseline.
//
// Minimises nothing. O(V + E). Skips devices that cannot run an op or are full; ignores times, transfers and
// loads.
#include "construction.h"

namespace heddle {
namespace {

ListDecisions in_turn(const FlatProblem& flat) {
  return {topological_list(flat), [turn = size_t{0}](uint32_t, const auto& slots) mutable -> int32_t {
            for (size_t tried = 0; tried < slots.size(); ++tried) {
              const size_t i = (turn + tried) % slots.size();
              if (!slots[i].possible()) continue;
              turn = i + 1;
              return static_cast<int32_t>(i);
            }
            return -1;
          }};
}

Result<PlannerOutput> plan_round_robin(const Problem& problem, const PlannerOptions& options) {
  return plan_by_list(problem, options, "round-robin", {.list = {.insertion = false}, .decide = in_turn});
}

}  // namespace

PlannerEntry round_robin_planner() {
  return {{.name = "round-robin",
           .description = "ops dealt to the devices in turn",
           .source = "baseline",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "memory limits",
           .ignores = "times, transfers, loads"},
          plan_round_robin};
}

}  // namespace heddle
