// Gurobi, if the user has it: runs its command line gurobi_cl, with files as input and output. Heddle neither
// links nor requires it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/solve/milp.h"

namespace heddle {

// The program named by HEDDLE_GUROBI, else the first executable gurobi_cl on the PATH.
std::optional<std::string> find_gurobi();

// Evaluates HEDDLE_MILP_SOLVER: the path of gurobi_cl for "gurobi", nullopt for "highs" or unset.
// kInvalidInput for another name; kUnsupported when there is no gurobi_cl.
Result<std::optional<std::string>> gurobi_to_use();

// Writes the model (LP format, with its start), runs the program until the deadline and reads its answer
// back. `integers` false: the model is continuous. The start of `model` is used if it is complete and
// feasible. Files are in a temporary folder of their own, which is removed. Same rules as solve() in milp.h
// except for time: the program also stops after `work` of its own units (WorkLimit). It is asked to stop 0.2
// s before the deadline (at most a tenth of the time), interrupted at the deadline or on cancellation, and
// killed 0.5 s later.
Result<Solution> solve_by_gurobi(const Milp& model, bool integers, double work, const SolveOptions& options,
                                 const std::string& program);

// The values in one line of gurobi_cl's log.
struct GurobiNews {
  double incumbent = std::numeric_limits<double>::infinity();
  double bound = -std::numeric_limits<double>::infinity();
};
// Parses a line of the node table, "H    0     0    20.0  19.5  2.5%  -  0s": incumbent and bound. nullopt
// for any other line.
std::optional<GurobiNews> parse_gurobi_progress(std::string_view line);
// The result in the last lines of the log.
struct GurobiVerdict {
  SolveStatus status = SolveStatus::kUnknown;  // set by explicit statements of the log
  double bound = -std::numeric_limits<double>::infinity();
  int64_t nodes = 0;
  std::string version;  // "11.0.3"; empty if not stated
};
GurobiVerdict parse_gurobi_log(std::string_view log);

}  // namespace heddle
