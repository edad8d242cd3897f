// EfficientMIP (Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS
// 2020), as SortingHat (ICS'25, section 4.2) compares with it: contiguous subgraphs, q per device, on equal
// devices whose transfers all go through host memory at twice its speed; the same submodels, each without a
// look at the one before; no direct host access, no parallel transmission, and parameter loads are no part of
// the program. The program is slot_model.cc's with these constants (slot_problem.cc).
//
// Minimises the sum of the submodels' makespans; what is reported is the evaluator's, with all loads: a
// subgraph starts when the last of its parameters is there. Unequal devices: the program takes the fastest's
// times for all, so that the plan may be far from what it promises.
#include "submodel_loop.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_efficient_mip(const Problem& problem, const PlannerOptions& options) {
  const auto devices = configurations(problem).front();
  HEDDLE_RETURN_IF_ERROR(check_slots(devices.size(), options.subgraph_slots, "efficient-mip"));
  const ColdTables tables(problem, devices);
  PlanStore candidates(problem);
  LoopOptions loop;
  loop.slots.q = static_cast<size_t>(options.subgraph_slots);
  loop.slots.independent = true;
  loop.solver = SlotSolver::kHighs;
  loop.whole_subgraphs = true;
  const auto submodels =
      dominator_submodels(*problem.graph, light_prologue(*problem.graph), std::max(1, options.dominators));
  HEDDLE_ASSIGN_OR_RETURN(const auto result,
                          run_submodels(tables, submodels, loop, options, "efficient-mip", candidates));
  return submodels_output(problem, options, result, candidates);
}

}  // namespace

PlannerEntry efficient_mip_planner() {
  return {{.name = "efficient-mip",
           .description = "contiguous subgraphs per submodel by a MILP that knows no loads, by HiGHS",
           .source = "Tarnawski et al., NeurIPS 2020, as in SortingHat, section 4.2",
           .objectives = {Objective::kColdLatency},
           .exploits = "model parallelism within a submodel, memory limits",
           .ignores = "loads, buses, unequal devices and links, submodels before"},
          plan_efficient_mip};
}

}  // namespace heddle
