// Greedy: DiviML's baseline "Greedy" (section V-B). Latency: ops in topological order of readiness, each on
// the device where it ends first given all that is decided, without looking back into gaps. Throughput: each
// on the device where the largest load grows least.
//
// Minimises the finish of the next op, or the largest load so far. O(E k). Exploits unequal devices,
// transfers with contention, parameter loads (cold) and memory limits; ignores what comes after.
#include <algorithm>

#include "construction.h"
#include "diviml/batched_list.h"
#include "search/load_search.h"

namespace heddle {
namespace {

std::optional<FlatPlan> by_finish(const FlatProblem& flat, const Reserve& reserve, const Deadline& deadline) {
  return list_plan(flat, {.insertion = false, .contention = true}, reserve,
                   {flat.topological().begin(), flat.topological().end()}, deadline,
                   [](uint32_t, const auto& slots) { return earliest_finish(slots); });
}

std::optional<FlatPlan> by_load(const FlatProblem& flat, const Reserve& reserve, const Deadline& deadline) {
  auto devices = least_load_devices(flat, reserve, deadline);
  if (!devices) return std::nullopt;
  return FlatPlan{std::move(*devices), {flat.topological().begin(), flat.topological().end()}};
}

Result<PlannerOutput> plan_greedy(const Problem& problem, const PlannerOptions& options) {
  if (auto batched = plan_batched(problem, options, "greedy", BatchRule::kGreedy)) return std::move(*batched);
  const bool throughput = problem.objective == Objective::kThroughput;
  return plan_by_construction(problem, options, "greedy",
                              [&](const FlatProblem& flat, const Reserve& reserve) {
                                return throughput ? by_load(flat, reserve, options.deadline)
                                                  : by_finish(flat, reserve, options.deadline);
                              });
}

}  // namespace

PlannerEntry greedy_planner() {
  return {{.name = "greedy",
           .description = "each op where it ends first; throughput: where the largest load grows least",
           .source = "DiviML, section V-B (Greedy)",
           .objectives = {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput},
           .exploits = "unequal devices, transfers with contention, parameter loads, memory limits",
           .ignores = "what comes after; gaps between ops"},
          plan_greedy};
}

}  // namespace heddle
