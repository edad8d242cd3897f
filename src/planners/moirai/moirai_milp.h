// Moirai's mixed-integer program (section III-D, equations 4 to 8) over the augmented graph.
#pragma once

#include <optional>
#include <vector>

#include "core/flat_problem.h"
#include "heddle/solve/milp.h"

namespace heddle {

struct MoiraiStart {
  FlatPlan plan;
  std::vector<double> op_start_us;           // per op
  std::vector<std::vector<double>> sent_us;  // [tensor][device], when its transfer there starts; any if none
  double makespan_us = 0;
};

struct MoiraiAnswer {
  SolveStatus status = SolveStatus::kUnknown;
  std::optional<FlatPlan> plan;
  double program_us = 0, bound_us = 0;  // the program's value of the plan; no plan is below the bound
  size_t rows = 0, columns = 0;
  int64_t nodes = 0;
};

// How many rows the program of this problem has: it is for those that are not too many. O(V^2 + flows^2),
// counting no further than `most`.
size_t count_moirai_rows(const FlatProblem& flat, size_t most);

// All times lie below the start's makespan, which is every big constant. Progress counts in microseconds.
Result<MoiraiAnswer> solve_moirai(const FlatProblem& flat, const MoiraiStart& start, SolveOptions options);

}  // namespace heddle
