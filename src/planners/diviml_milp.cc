// DiviML's mixed integer linear program on the whole graph: section IV-A, equations 1 to 7 (module_milp.cc
// has them, and what was corrected), started from the best constructive plan.
//
// Minimises the latency of one request, or of a batch of requests where the problem's known segments are
// batches. O(V^2 K + E K^2) rows. "diviml-milp" solves it by HiGHS, "diviml-cp" the same decisions by CP-SAT.
// Exploits unequal devices, transfer times and batches; ignores that transfers wait for each other (the
// evaluator does not) and memory limits.
#include "factories.h"
#include "module_planner.h"

namespace heddle {
namespace {

class WholeGraph final : public Planner {
 public:
  WholeGraph(std::string name, ModuleSolver solver) : name_(std::move(name)), solver_(std::move(solver)) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    return plan_by_models(problem, options, name_,
                          [&](const TaskModel& model, const std::vector<Batch>& start,
                              const ModuleLimits& limits) -> Result<SplitResult> {
                            ModuleProblem whole;
                            whole.model = &model;
                            whole.tasks.assign(model.order().begin(), model.order().end());
                            ModuleAnswer first;
                            if (!start.empty())
                              first.batches = start, first.value_us = module_value(whole, start);
                            HEDDLE_ASSIGN_OR_RETURN(const ModuleAnswer answer, solver_(whole, first, limits));
                            return SplitResult{
                                answer.batches, answer.value_us, answer.bound_us, answer.optimal, 1, 1};
                          });
  }

 private:
  const std::string name_;
  const ModuleSolver solver_;
};

}  // namespace

std::unique_ptr<Planner> make_diviml_milp() {
  return std::make_unique<WholeGraph>("diviml-milp", solve_module_by_milp);
}
std::unique_ptr<Planner> make_diviml_cp() {
  return std::make_unique<WholeGraph>("diviml-cp", solve_module_by_cp);
}

}  // namespace heddle
