// Gurobi, where the user has it: its command line gurobi_cl, files in and out. Heddle neither links nor needs
// it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/solve/milp.h"

namespace heddle {

// The program that HEDDLE_GUROBI names, else the first gurobi_cl on the PATH that may be run.
std::optional<std::string> find_gurobi();

// What HEDDLE_MILP_SOLVER asks for: the path of gurobi_cl for "gurobi", nothing for "highs" and when it is
// not set. kInvalidInput for another name; kUnsupported when there is no gurobi_cl.
Result<std::optional<std::string>> gurobi_to_use();

// Writes the model (LP format, with its start), runs the program until the deadline and reads its answer
// back. `integers` false: the model is continuous. The start of `model` counts when it is complete and fits.
// Files live in a temporary folder of their own, which is removed. Rules of solve() in milp.h, but for the
// time: it also stops after `work` of its own units (WorkLimit); the program is asked to stop 0.2 s before
// the deadline (at most a tenth of the time), interrupted at the deadline or on cancellation, and killed 0.5
// s later.
Result<Solution> solve_by_gurobi(const Milp& model, bool integers, double work, const SolveOptions& options,
                                 const std::string& program);

// What gurobi_cl tells in a line of its log.
struct GurobiNews {
  double incumbent = std::numeric_limits<double>::infinity();
  double bound = -std::numeric_limits<double>::infinity();
};
// A line of the table of nodes, "H    0     0    20.0  19.5  2.5%  -  0s": incumbent and bound; nothing for
// every other line.
std::optional<GurobiNews> parse_gurobi_progress(std::string_view line);
// The last lines: what was proven.
struct GurobiVerdict {
  SolveStatus status = SolveStatus::kUnknown;  // kOptimal, kInfeasible and kUnbounded: said in words
  double bound = -std::numeric_limits<double>::infinity();
  int64_t nodes = 0;
  std::string version;  // "11.0.3", empty when it was not told
};
GurobiVerdict parse_gurobi_log(std::string_view log);

}  // namespace heddle
