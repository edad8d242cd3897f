// Several planners on one problem.
#pragma once

#include <string>
#include <vector>

#include "heddle/session/session.h"

namespace heddle {

struct ComparedPlan {
  std::string planner;
  Result<PlanResult>
      result;  // with the best bound of all; a planner that fails does not hide the others' results
};

// In the order of `planners`; none: all that support the problem. The time limit is each planner's. Nothing is
// measured. Errors: a plan that is better than a proven bound.
Result<std::vector<ComparedPlan>> compare_planners(const Problem& problem,
                                                   std::vector<const PlannerEntry*> planners,
                                                   const SearchSettings& search, const Control& control);

}  // namespace heddle
