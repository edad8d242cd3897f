// Solving by CP-SAT. Its C interface has no callbacks, so incumbents are unknown until the search ends.
// on_progress receives a complete hint at the start and the best solution at the end.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "cp_sat_library.h"
#include "cp_state.h"
#include "heddle/base/units.h"
#include "heddle/solve/cp_work.h"
#include "solve_options.h"
#include "wire_format.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
// Conflicts per unit of work: about the maximum that a search over some hundred intervals reaches.
constexpr double kConflictsPerWork = 20'000;

// CpSolverStatus
enum : int64_t { kModelInvalid = 1, kFeasible = 2, kInfeasible = 3, kOptimal = 4 };

struct Response {
  int64_t status = 0, branches = 0;
  double bound = 0;
  std::vector<int64_t> values;
  std::string info;
};

// CpSolverResponse: status 1, solution 2, best_objective_bound 4, num_branches 12, solution_info 20.
Result<Response> read_response(std::string_view bytes) {
  Response response;
  wire::Reader reader(bytes);
  bool malformed = false;
  while (const auto field = reader.next()) {
    if (field->number == 1) response.status = static_cast<int64_t>(field->integer);
    if (field->number == 4) response.bound = field->as_double();
    if (field->number == 12) response.branches = static_cast<int64_t>(field->integer);
    if (field->number == 20) response.info = std::string(field->bytes);
    if (field->number != 2) continue;
    wire::Reader packed(field->bytes);
    while (const auto value = packed.next_packed()) response.values.push_back(*value);
    malformed = malformed || packed.malformed();
  }
  if (malformed || reader.malformed()) return Error(Code::kInternal, "the response cannot be read");
  return response;
}

// SatParameters. Does not use interleave_search, CP-SAT's way to be deterministic with several workers. One
// worker, or two free ones, solved a job shop of 30 x 10 in seconds. With interleave_search, half of the runs
// had no solution at the limit; the others returned a proven optimum only then (OR-Tools 9.15).
std::string parameters(const SolveOptions& options, double work) {
  wire::Writer w;
  w.varint_field(206, options.deterministic ? 1 : options.threads);     // num_workers
  w.varint_field(31, static_cast<int64_t>(options.seed % 2147483647));  // random_seed
  w.varint_field(135, 0);                                               // catch_sigint_signal
  w.double_field(159, options.abs_gap);                                 // absolute_gap_limit
  w.double_field(160, options.rel_gap);                                 // relative_gap_limit
  if (!options.linear_relaxation) w.varint_field(90, 0);                // linearization_level
  if (std::isfinite(work)) {
    w.double_field(67, work);  // max_deterministic_time
    // Deterministic time does not count all costs of propagation, so limit conflicts in proportion.
    w.varint_field(37, static_cast<int64_t>(std::clamp(kConflictsPerWork * work, 1.0, 1e15)));
    // Limit the steps that run before work is counted: the closure of all precedences, and probing.
    w.varint_field(327, 10'000);  // transitive_precedences_work_limit
    w.varint_field(110, 0);       // cp_model_probing_level
  }
  const double left = options.deadline.seconds_left();
  // Stop a little early: the last solution must still be mapped back through presolve.
  if (std::isfinite(left)) w.double_field(36, left - std::min(0.05, 0.1 * left));  // max_time_in_seconds
  return w.bytes();
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
  CpSolve(const CpModel& model, const SolveOptions& options, double work)
      : model_(model),
        options_(options),
        work_(work),
        objective_(normalised(model.state().objective.value_or(CpExpr(0)))) {}

  Result<Solution> run() {
    solution_.solver = "CP-SAT " + cp_sat_version();
    const auto [least, most] = range_of(objective_, model_.state());
    std::string bytes = model_.to_bytes();
    if (options_.cutoff <= below(least)) return no_better();
    if (options_.cutoff <= static_cast<double>(most)) {
      // An extra constraint: objective <= the largest integer below the cutoff.
      const double limit = std::ceil(options_.cutoff) - 1;
      CpExpr expr = objective_;
      wire::Writer row, constraint;
      std::vector<int64_t> vars, coefficients;
      for (const CpTerm& term : expr.terms) {
        vars.push_back(term.var.index);
        coefficients.push_back(term.coefficient);
      }
      if (!vars.empty()) row.packed_field(1, vars).packed_field(2, coefficients);
      row.packed_field(3, {std::numeric_limits<int64_t>::min(),
                           static_cast<int64_t>(static_cast<Wide>(limit) - expr.constant)});
      constraint.message_field(12, row);
      bytes += wire::Writer().message_field(3, constraint).bytes();
    }
    take_hint();
    if (!options_.deadline.should_stop()) HEDDLE_RETURN_IF_ERROR(search(std::move(bytes)));
    solution_.seconds = elapsed();
    return solution_;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  Solution no_better() {
    solution_.status = SolveStatus::kInfeasible;
    solution_.bound = options_.cutoff;
    solution_.seconds = elapsed();
    return solution_;
  }

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
    std::map<int32_t, int64_t> hints;
    for (const auto& [var, value] : model_.state().hints) hints[var.index] = value;
    if (hints.size() != model_.num_variables() || hints.empty()) return;
    std::vector<int64_t> values;
    for (const auto& [var, value] : hints) values.push_back(value);
    if (!violation(model_, values).empty()) return;
    if (static_cast<double>(evaluate(objective_, values)) < options_.cutoff) take(values);
  }

  Status search(std::string bytes) {
    HEDDLE_ASSIGN_OR_RETURN(const auto answer,
                            cp_sat_solve(std::move(bytes), parameters(options_, work_), options_.deadline));
    if (!answer) return {};  // stopped too slowly: the hint remains
    const auto failed = [&](Code code, const std::string& what) {
      return Error(code, what).with_context(solution_.solver);
    };
    auto read = read_response(*answer);
    if (!read.ok()) return std::move(read).error().with_context(solution_.solver);
    const Response& response = *read;
    solution_.nodes = response.branches;
    if (response.status == kModelInvalid) {
      return failed(Code::kInvalidInput, "it refuses the model: " + response.info);
    }
    if (response.status == kInfeasible) {
      if (solution_.has_values()) {
        return failed(Code::kInternal, "it says that there is no solution but the hint is one");
      }
      solution_.status = SolveStatus::kInfeasible;
      solution_.bound = options_.cutoff;
      return {};
    }
    solution_.bound = objective_.terms.empty() ? below(objective_.constant)
                                               : safe_bound(response.bound, objective_.constant);
    if (response.status != kFeasible && response.status != kOptimal) return {};
    const std::string fault = violation(model_, response.values);
    if (!fault.empty()) return failed(Code::kInternal, "its solution breaks the model: " + fault);
    const auto value = static_cast<double>(evaluate(objective_, response.values));
    if (value >= options_.cutoff) return failed(Code::kInternal, "its solution is not below the cutoff");
    if (!solution_.has_values() || value < solution_.objective) take(response.values);
    solution_.bound = std::min(solution_.bound, solution_.objective);
    if (response.status == kOptimal) solution_.status = SolveStatus::kOptimal;
    return {};
  }

  const CpModel& model_;
  const SolveOptions& options_;
  const double work_;
  const CpExpr objective_;
  const Clock::time_point begin_ = Clock::now();
  Solution solution_;
};

}  // namespace

Result<Solution> solve_for(const CpModel& model, double work, const SolveOptions& options) {
  if (!(work > 0)) return Error(Code::kInvalidInput, "the limit of work is not above 0");
  HEDDLE_RETURN_IF_ERROR(check_options(options));
  HEDDLE_RETURN_IF_ERROR(check_model(model));
  return CpSolve(model, options, work).run();
}

Result<Solution> solve(const CpModel& model, const SolveOptions& options) {
  return solve_for(model, kInfinity, options);
}

}  // namespace heddle
