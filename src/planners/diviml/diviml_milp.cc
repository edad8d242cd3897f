// DiviML's mixed integer linear program on the whole graph: section IV-A, equations 1 to 7 (module_milp.cc
// has them, and what was corrected), started from the best constructive plan.
//
// Minimises the latency of one request, or of a batch of requests where the problem's known segments are
// batches. O(V^2 K + E K^2) rows. "diviml-milp" solves it by HiGHS, "diviml-cp" the same decisions by CP-SAT.
// Exploits unequal devices, transfer times and batches; ignores that transfers wait for each other (the
// evaluator does not) and memory limits.
#include "core/factories.h"
#include "module_planner.h"

namespace heddle {
namespace {

class WholeGraph final : public Planner {
 public:
  WholeGraph(std::string name, ModuleSolver solver) : name_(std::move(name)), solver_(std::move(solver)) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    return plan_whole(problem, options, name_, solver_);
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
