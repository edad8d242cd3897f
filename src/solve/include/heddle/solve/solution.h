// Options and results, the same for every solver.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"

namespace heddle {

enum class SolveStatus {
  kOptimal,     // values and bound agree within the requested gap
  kFeasible,    // values without a proof of optimality
  kInfeasible,  // proven: no solution exists
  kUnbounded,   // or infeasible: the solver did not distinguish them
  kUnknown,     // stopped without a solution or a proof
};
const char* solve_status_name(SolveStatus status);

struct SolveProgress {
  double elapsed_s = 0;
  double incumbent = std::numeric_limits<double>::infinity();  // infinity: none yet
  double bound = -std::numeric_limits<double>::infinity();
  // Values of all variables by index; empty unless an incumbent was just found. Valid only during the call.
  std::span<const double> values;
};

struct SolveOptions {
  Deadline deadline;  // returns the best so far; noticed within 100 ms
  // Limits the search by an amount of work, which each solver counts itself, whatever the machine's load. A
  // unit is about a second of one core (CP-SAT: some seconds). HiGHS weights its iterations by the model's
  // size. With one thread the answer is the same on every run. Above 0.
  double work = std::numeric_limits<double>::infinity();
  int threads = 1;  // of HiGHS; CP-SAT uses one
  uint64_t seed = 1;
  // CP-SAT: also use linear relaxations. Off is faster for some schedules, slower for others.
  bool linear_relaxation = true;
  // Unset: HiGHS with it, CP-SAT with it for models without intervals alone
  // (docs/decisions/0075-schedules-without-presolve.md).
  std::optional<bool> presolve;
  double rel_gap = 1e-6, abs_gap = 1e-9;  // either one suffices for kOptimal
  // May be called from other threads, but never concurrently. Must be quick.
  std::function<void(const SolveProgress&)> on_progress;
};

struct Solution {
  SolveStatus status = SolveStatus::kUnknown;
  std::vector<double> values;  // by variable index; empty without a solution. Integers are exact
  double objective = std::numeric_limits<double>::infinity();
  double bound =
      -std::numeric_limits<double>::infinity();  // no solution has a smaller objective, says the solver
  int64_t nodes = 0;                             // nodes of the search tree; CP-SAT: branches
  std::string solver;                            // highs_name() or cp_sat_name()
  std::vector<double> duals;  // of each row of an optimal LP, for lp_dual_bound(); else empty
  bool has_values() const { return status == SolveStatus::kOptimal || status == SolveStatus::kFeasible; }
};

// "HiGHS 1.15.1", "CP-SAT 9.15.6755": the solvers as this program was built for them.
std::string highs_name();
std::string cp_sat_name();

}  // namespace heddle
