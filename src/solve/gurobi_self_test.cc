#include <cmath>

#include "gurobi.h"
#include "heddle/solve/self_test.h"

namespace heddle {
namespace {

constexpr double kSeconds = 10, kGurobiTolerance = 1e-6;

}  // namespace

// The model of highs_self_test.cc: minimise 2x + 3z, x + z >= 4.5, z an integer. The optimum is 9.
SolverSelfTest gurobi_self_test() {
  SolverSelfTest result;
  const auto program = find_gurobi();
  if (!program) return result;
  result.gurobi_program = *program;
  Milp model;
  const Var x = model.add_continuous(0, 10), z = model.add_integer(0, 10);
  model.add_cost(x, 2);
  model.add_cost(z, 3);
  model.at_least({{x, 1}, {z, 1}}, 4.5);
  SolveOptions options;
  options.deadline = Deadline::after_seconds(kSeconds);
  const auto solution = solve_by_gurobi(model, /*integers=*/true, kNoBound, options, *program);
  if (!solution.ok()) {
    result.gurobi_error = solution.error().to_string();
    return result;
  }
  result.gurobi_version = solution->solver;
  result.gurobi_value = solution->objective;
  if (solution->status != SolveStatus::kOptimal ||
      !(std::fabs(solution->objective - 9) <= kGurobiTolerance)) {
    result.gurobi_error =
        "the optimum is 9 but it answered " + std::string(solve_status_name(solution->status));
    if (solution->has_values()) result.gurobi_error += ", " + std::to_string(solution->objective);
  }
  return result;
}

}  // namespace heddle
