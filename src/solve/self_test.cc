#include "heddle/solve/self_test.h"

#include <array>
#include <cmath>

#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"

namespace heddle {
namespace {

constexpr double kTolerance = 1e-5;  // above the solvers' own

// Compares a solution with the optimum that was found by hand.
Result<SolverSelfTest> compare(const std::string& solver, const Result<Solution>& solution, double expected) {
  const std::string place = "self-test of " + solver;
  if (!solution.ok()) return Error(solution.error()).with_context(place);
  const std::string& name = solution->solver;  // "HiGHS 1.15.1"
  const bool optimal = solution->status == SolveStatus::kOptimal;
  if (optimal && std::fabs(solution->objective - expected) <= kTolerance)
    return SolverSelfTest{name.substr(name.rfind(' ') + 1), solution->objective, expected};
  return Error(Code::kInternal,
               name + " answers " + solve_status_name(solution->status) + " " +
                   std::to_string(solution->objective) + ", expected an optimum of " +
                   std::to_string(expected) +
                   "; run `make setup` for the releases of the solvers that Heddle is tested with")
      .with_context(place);
}

}  // namespace

// minimise 2x + 3z subject to x + z >= 4.5, 0 <= x <= 10, 0 <= z <= 10 and integer.
// x costs less per unit of the constraint and may be fractional, so the optimum is x = 4.5, z = 0 with value
// 9. HiGHS 1.14's presolve fixes z first and returns 15 (github.com/lovasoa/highs-js/issues/53); fixed in
// 1.15.
Result<SolverSelfTest> highs_self_test() {
  Milp model;
  const Var x = model.add_continuous(0, 10), z = model.add_integer(0, 10);
  model.add_cost(x, 2);
  model.add_cost(z, 3);
  model.at_least({{x, 1}, {z, 1}}, 4.5);
  return compare("HiGHS", solve(model), 9);
}

// Three tasks on one machine, minimising the weighted sum of completion times. By Smith's rule they run in
// order of time / weight: the second (2/4), the third (4/2), the first (3/1). They end at 2, 6 and 9: 4*2 +
// 2*6 + 1*9 = 29.
Result<SolverSelfTest> cp_sat_self_test() {
  struct Task {
    int64_t time, weight;
  };
  constexpr std::array<Task, 3> kTasks = {{{3, 1}, {2, 4}, {4, 2}}};
  CpModel model;
  CpExpr objective;
  std::vector<CpInterval> intervals;
  for (const Task& task : kTasks) {
    const CpVar start = model.add_integer(0, 20);
    intervals.push_back(model.interval(start, task.time, CpExpr(start).add(task.time)));
    objective.add(start, task.weight).add(task.weight * task.time);
  }
  model.no_overlap(intervals);
  model.minimise(std::move(objective));
  return compare("CP-SAT", solve(model), 29);
}

}  // namespace heddle
