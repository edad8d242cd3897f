// Plans of the same model on other hardware.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session/session.h"

namespace heddle {

// Other hardware than the session's, and what to call it.
struct HardwareChange {
  std::string what;
  std::vector<ProblemEdit> edits;          // one after the other
  std::shared_ptr<const Cluster> cluster;  // instead of the session's, before the edits; null: the session's
};

struct Replanned {
  std::string what;
  Problem problem;
  PlanResult result;
};

// Plans for the session's problem and then for each change of the hardware, from the first plan's decisions on where
// they are possible there. Each problem is offered the others' plans, too, for a planner that stops early may
// find less on better hardware: what is left is the hardware's effect on the best plans known. The first row,
// "as it is", is the session's own. Nothing is measured. Errors name the change.
Result<std::vector<Replanned>> replan(const Session& session, const std::vector<HardwareChange>& changes,
                                      const ProblemSettings& settings, const std::string& planner,
                                      const SearchSettings& search, const Control& control);

// The same decisions on another problem of the same units: devices by name. nullopt when one of them is not
// there, or the plan is none there.
std::optional<Plan> carry_over(const Problem& from, const Plan& plan, const Problem& to);

}  // namespace heddle
