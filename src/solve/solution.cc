#include "heddle/solve/solution.h"

namespace heddle {

const char* solve_status_name(SolveStatus status) {
  switch (status) {
    case SolveStatus::kOptimal:
      return "optimal";
    case SolveStatus::kFeasible:
      return "feasible";
    case SolveStatus::kInfeasible:
      return "infeasible";
    case SolveStatus::kUnbounded:
      return "unbounded";
    case SolveStatus::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace heddle
