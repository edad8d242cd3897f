// Solving by CP-SAT. Its C interface has no callbacks, so incumbents are unknown until the search ends.
// on_progress receives a complete hint at the start and the best solution at the end.
#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>

#include "cp_sat_library.h"
#include "cp_state.h"
#include "heddle/base/units.h"
#include "ortools/sat/sat_parameters.pb.h"
#include "solve_options.h"

namespace heddle {

std::string cp_sat_name() { return std::string("CP-SAT ") + HEDDLE_ORTOOLS_VERSION; }

namespace {

using Clock = std::chrono::steady_clock;
// Conflicts per unit of work: about the maximum that a search over some hundred intervals reaches.
constexpr double kConflictsPerWork = 20'000;

// One worker: with several, CP-SAT is deterministic only by interleave_search. One worker, or two free ones,
// solved a job shop of 30 x 10 in seconds. With interleave_search, half of the runs had no solution at the
// limit; the others returned a proven optimum only then (OR-Tools 9.15).
std::string parameters(const SolveOptions& options, bool has_intervals) {
  cp_sat::SatParameters p;
  p.set_num_workers(1);
  p.set_random_seed(static_cast<int32_t>(options.seed % 2147483647));
  p.set_catch_sigint_signal(false);
  p.set_absolute_gap_limit(options.abs_gap);
  p.set_relative_gap_limit(options.rel_gap);
  // This step of presolve makes release 9.15 call wrong values optimal (google/or-tools, issue 5293).
  p.set_presolve_inclusion_work_limit(0);
  if (!options.linear_relaxation) p.set_linearization_level(0);
  // Linear relaxations of presolved schedules make it call wrong values optimal, too.
  p.set_cp_model_presolve(options.presolve.value_or(!has_intervals));
  if (std::isfinite(options.work)) {
    p.set_max_deterministic_time(options.work);
    // Deterministic time does not count all costs of propagation, so limit conflicts in proportion.
    p.set_max_number_of_conflicts(
        static_cast<int64_t>(std::clamp(kConflictsPerWork * options.work, 1.0, 1e15)));
    // Limit the steps that run before work is counted: the closure of all precedences, and probing.
    p.set_transitive_precedences_work_limit(10'000);
    p.set_cp_model_probing_level(0);
  }
  const double left = options.deadline.seconds_left();
  // Stop a little early: the last solution must still be mapped back through presolve.
  if (std::isfinite(left)) p.set_max_time_in_seconds(left - std::min(0.05, 0.1 * left));
  return p.SerializeAsString();
}

// The largest double at or below the value.
double below(Wide value) {
  const auto d = static_cast<double>(value);
  return static_cast<Wide>(d) > value ? std::nextafter(d, -kInfinity) : d;
}

// The proven bound, rounded so that it never exceeds the truth. The solver proves an integer and reports it
// after scaling and shifting by doubles (the objective's common divisor, parts fixed by presolve): 1 may
// arrive as 0.9999999.
double safe_bound(double bound, int64_t constant) {
  if (!std::isfinite(bound)) return -kInfinity;
  const double size = std::max(std::fabs(bound), std::fabs(static_cast<double>(constant)));
  const double nearest = std::round(bound);
  if (size < 0x1p30 && std::fabs(bound - nearest) < 1e-6) return nearest;
  return std::floor(bound - size * 0x1p-48);
}

class CpSolve {
 public:
  CpSolve(const CpModel& model, const SolveOptions& options)
      : model_(model),
        options_(options),
        objective_(model.state().objective.value_or(cp_sat::LinearExpressionProto())) {
    solution_.solver = cp_sat_name();
  }

  Result<Solution> run() {
    take_hint();
    if (!options_.deadline.should_stop()) HEDDLE_RETURN_IF_ERROR(search());
    return solution_;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void take(std::span<const int64_t> values) {
    solution_.values.assign(values.begin(), values.end());
    solution_.objective = static_cast<double>(evaluate(objective_, values));
    solution_.status = SolveStatus::kFeasible;
    if (options_.on_progress) {
      options_.on_progress({elapsed(), solution_.objective, solution_.bound, solution_.values});
    }
  }

  // Keeps a complete feasible hint, to return it if the search stops without a solution.
  void take_hint() {
    const auto& hints = model_.state().hints;
    if (hints.empty() || hints.size() != static_cast<size_t>(model_.state().proto.variables_size())) return;
    std::vector<int64_t> values;
    for (const auto& [var, value] : hints) values.push_back(value);
    if (violation(model_, values).empty()) take(values);
  }

  Status search() {
    const CpModel::State& state = model_.state();
    const auto rest = rest_of(state);
    if (state.proto.ByteSizeLong() + rest.ByteSizeLong() > INT_MAX)  // the most that protobuf writes
      return unsupported("the model is over 2 GiB");
    std::string bytes = state.proto.SerializeAsString() + rest.SerializeAsString();
    const bool has_intervals =
        std::ranges::any_of(state.proto.constraints(), [](const auto& c) { return c.has_interval(); });
    HEDDLE_ASSIGN_OR_RETURN(
        const auto answer,
        cp_sat_solve(std::move(bytes), parameters(options_, has_intervals), options_.deadline));
    if (!answer) return {};  // stopped too slowly: the hint remains
    cp_sat::CpSolverResponse response;
    if (!response.ParseFromString(*answer)) return internal_error("the response cannot be read");
    solution_.nodes = response.num_branches();
    if (response.status() == cp_sat::MODEL_INVALID)
      return invalid_input("it refuses the model: " + response.solution_info());
    if (response.status() == cp_sat::INFEASIBLE) {
      if (solution_.has_values())
        return internal_error("it reports that the model is infeasible, but the hint is a solution");
      solution_.status = SolveStatus::kInfeasible;
      solution_.bound = kInfinity;
      return {};
    }
    solution_.bound = objective_.vars().empty()
                          ? below(objective_.offset())
                          : safe_bound(response.best_objective_bound(), objective_.offset());
    if (response.status() == cp_sat::UNKNOWN) return {};
    const std::vector<int64_t> values(response.solution().begin(), response.solution().end());
    const std::string fault = violation(model_, values);
    if (!fault.empty()) return internal_error("its solution breaks the model: " + fault);
    const auto value = static_cast<double>(evaluate(objective_, values));
    if (!solution_.has_values() || value < solution_.objective) take(values);
    solution_.bound = std::min(solution_.bound, solution_.objective);
    if (response.status() == cp_sat::OPTIMAL) solution_.status = SolveStatus::kOptimal;
    return {};
  }

  const CpModel& model_;
  const SolveOptions& options_;
  const cp_sat::LinearExpressionProto objective_;
  const Clock::time_point begin_ = Clock::now();
  Solution solution_;
};

}  // namespace

cp_sat::CpModelProto rest_of(const CpModel::State& state) {
  cp_sat::CpModelProto rest;
  for (const auto& constraint : state.interval_sums) *rest.add_constraints() = constraint;
  if (state.objective) {
    *rest.mutable_objective()->mutable_vars() = state.objective->vars();
    *rest.mutable_objective()->mutable_coeffs() = state.objective->coeffs();
    rest.mutable_objective()->set_offset(static_cast<double>(state.objective->offset()));
  }
  for (const auto& [var, value] : state.hints) {
    rest.mutable_solution_hint()->add_vars(var);
    rest.mutable_solution_hint()->add_values(value);
  }
  return rest;
}

Result<Solution> solve(const CpModel& model, const SolveOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_options(options));
  HEDDLE_RETURN_IF_ERROR(check_model(model));
  auto solution = CpSolve(model, options).run();
  if (!solution.ok()) return std::move(solution).error().with_context(cp_sat_name());
  return solution;
}

}  // namespace heddle
