#include "heddle/solve/solution.h"

#include "solve_options.h"

namespace heddle {

const char* solve_status_name(SolveStatus status) {
  static constexpr const char* kNames[] = {"optimal", "feasible", "infeasible", "unbounded", "unknown"};
  return kNames[static_cast<size_t>(status)];
}

Status check_options(const SolveOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    return invalid_input("the number of threads is " + std::to_string(options.threads) +
                         ", expected 1 to 1024");
  }
  if (!(options.work > 0)) return invalid_input("the limit of work is not above 0");
  if (!(options.rel_gap >= 0) || !(options.abs_gap >= 0)) {
    return invalid_input("a gap is below 0 or not a number");
  }
  return {};
}

}  // namespace heddle
