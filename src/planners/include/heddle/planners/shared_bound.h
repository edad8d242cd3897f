// Several planners' plans and bounds of one problem. No plan may lie below any bound.
#pragma once

#include <optional>
#include <string>

#include "heddle/planners/planner.h"

namespace heddle {

class SharedBound {
 public:
  // `problem` must outlive this.
  explicit SharedBound(const Problem& problem) : problem_(&problem) {}

  // kInternal (below_bound()) if one of the plans is below one of the bounds so far.
  Status add(const PlanResult& result);
  // The highest so far; 0 before the first.
  const Bound& best() const { return bound_; }

 private:
  const Problem* problem_;
  Bound bound_;
  std::string bound_of_;             // the planner with that bound
  std::optional<PlanResult> least_;  // the plan with the least value
};

// The error that a plan is below a bound, so that one of the two is wrong: kInternal. It names the bound and
// who vouches for it, and the file in the working directory that now has problem, plan and bound.
Error below_bound(const Problem& problem, const PlanResult& plan, const Bound& bound,
                  const std::string& bound_of);

}  // namespace heddle
