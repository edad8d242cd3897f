// What a solver is asked and what it answers, the same for every solver.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"

namespace heddle {

enum class SolveStatus {
  kOptimal,     // values and bound agree within the gap asked for
  kFeasible,    // values, but not proven optimal
  kInfeasible,  // proven: there is no solution
  kUnbounded,   // or infeasible: the solver did not tell them apart
  kUnknown,     // stopped before it had a solution or a proof
};
const char* solve_status_name(SolveStatus status);

struct SolveProgress {
  double elapsed_s = 0;
  double incumbent = std::numeric_limits<double>::infinity();  // infinity: none yet
  double bound = -std::numeric_limits<double>::infinity();
  // Of every variable, by index; empty unless a new incumbent was just found. Valid during the call only.
  std::span<const double> values;
};

struct SolveOptions {
  Deadline deadline;  // the best so far when it stops; noticed within 100 ms
  int threads = 1;
  uint64_t seed = 1;
  // The same answer for the same model, seed and number of threads, deadlines apart. CP-SAT then uses one
  // thread; HiGHS always is deterministic.
  bool deterministic = true;
  // CP-SAT: whether it also reasons by linear programs. Off is faster on some schedules, slower on others.
  bool linear_relaxation = true;
  double rel_gap = 1e-6, abs_gap = 1e-9;  // either one met: optimal
  // Solutions that are not better than this are not wanted: the solver may stop with kInfeasible, which then
  // proves that the optimum is at least this.
  double cutoff = std::numeric_limits<double>::infinity();
  // May be called from other threads, one call at a time. Must be quick.
  std::function<void(const SolveProgress&)> on_progress;
};

struct Solution {
  SolveStatus status = SolveStatus::kUnknown;
  std::vector<double> values;  // by variable index; empty without a solution. Integers are exact
  double objective = std::numeric_limits<double>::infinity();
  double bound = -std::numeric_limits<double>::infinity();  // proven: no solution is below
  double seconds = 0;
  int64_t nodes = 0;   // of the search tree, or CP-SAT's branches
  std::string solver;  // "HiGHS 1.15.1"
  bool has_values() const { return status == SolveStatus::kOptimal || status == SolveStatus::kFeasible; }
};

}  // namespace heddle
