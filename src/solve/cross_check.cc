#include "heddle/solve/cross_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cp_state.h"
#include "heddle/base/gap.h"

namespace heddle {
namespace {

// HiGHS takes a binary of 1e-6 for 0; a big constant of this size turns that into a hundredth.
constexpr Wide kMostForHighs = 10'000;

void answer_twice(const auto& model, SolveOptions options, const std::string& name, const std::string& form,
                  std::vector<SolverAnswer>& answers) {
  for (const bool presolve : {true, false}) {
    options.presolve = presolve;
    SolverAnswer answer{.by = name + form + (presolve ? "" : ", without presolve")};
    if (const auto solution = solve(model, options); solution.ok()) {
      answer.status = solution->status;
      answer.value = solution->objective;
      answer.bound = solution->bound;
    } else {
      answer.fault = solution.error().to_string();
    }
    answers.push_back(std::move(answer));
  }
}

// The largest number that a row or an interval's end may reach.
Wide reach_of(const CpModel::State& state) {
  Wide most = 0;
  for (const auto& constraint : state.proto.constraints()) {
    if (!constraint.has_linear()) continue;
    Wide sum = 0;
    for (int i = 0; i < constraint.linear().vars_size(); ++i) {
      const auto& v = state.proto.variables(constraint.linear().vars(i));
      const Wide size = std::max(std::abs(v.domain(0)), std::abs(v.domain(1)));
      sum += size * std::abs(constraint.linear().coeffs(i));
    }
    most = std::max(most, sum);
  }
  for (const auto& v : state.proto.variables())
    most = std::max<Wide>(most, std::max(std::abs(v.domain(0)), std::abs(v.domain(1))));
  return most;
}

}  // namespace

std::vector<SolverAnswer> all_answers(const CpModel& model, const SolveOptions& options) {
  std::vector<SolverAnswer> answers;
  answer_twice(model, options, cp_sat_name(), "", answers);
  if (reach_of(model.state()) <= kMostForHighs)
    answer_twice(to_milp(model), options, highs_name(), " as a MILP", answers);
  return answers;
}

std::vector<SolverAnswer> all_answers(const Milp& model, const SolveOptions& options) {
  std::vector<SolverAnswer> answers;
  answer_twice(model, options, highs_name(), "", answers);
  return answers;
}

std::string contradiction(std::span<const SolverAnswer> answers) {
  for (const SolverAnswer& a : answers) {
    if (!a.fault.empty()) return a.by + ": " + a.fault;
  }
  for (const SolverAnswer& a : answers) {
    for (const SolverAnswer& b : answers) {
      const bool b_solves = std::isfinite(b.value);
      if (b_solves && a.status == SolveStatus::kInfeasible)
        return fmt::format("{} finds no solution, {} one of value {:.9g}", a.by, b.by, b.value);
      if (b.status == SolveStatus::kOptimal && a.status == SolveStatus::kUnbounded)
        return fmt::format("{} finds no least value, {} finds {:.9g}", a.by, b.by, b.value);
      if (b_solves && a.bound > b.value + kSolverTolerance * std::max(1.0, std::fabs(b.value)))
        return fmt::format("{} claims the bound {:.9g}, {} has a solution of value {:.9g}", a.by, a.bound,
                           b.by, b.value);
    }
  }
  return "";
}

std::string to_text(const CpModel& model) {
  const auto& state = model.state();
  cp_sat::CpModelProto whole = state.proto;
  whole.MergeFrom(rest_of(state));
  return whole.DebugString();
}

}  // namespace heddle
