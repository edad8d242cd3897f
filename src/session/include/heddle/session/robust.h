// Plans that stay fast if one device becomes slower than it was measured.
#pragma once

#include <string>

#include "heddle/plan/robustness.h"
#include "heddle/session/session.h"

namespace heddle {

inline constexpr double kMostRobustShare = 0.9;

struct RobustPlan {
  PlanResult result;     // its value, bound and timeline are those at full speed
  double share = 0;      // of its speed that one device may lose
  WorstLoss worst;       // the plan's, over all devices
  WorstLoss of_fastest;  // that of the plan which is best at full speed
  // Below the worst value of any plan, for the devices that were planned for. 0: none was proven.
  Bound bound;
};

// The plan whose worst value over the loss of `share` (more than 0, at most kMostRobustShare) of one device's speed is
// the best that was found. It begins with make_plan()'s plan. Then it plans for the loss that costs the best plan
// most, as long as that is a loss not planned for yet; each plan found is evaluated under all losses. Any plan is at
// least as slow as the bound of one such problem, so the largest of these is a bound of the worst value. The search's
// time limit is for all together: half of it for the first plan. Invalid input if the share is out of range.
Result<RobustPlan> make_robust_plan(Session& session, const std::string& planner,
                                    const SearchSettings& search, double share, const Control& control);

}  // namespace heddle
