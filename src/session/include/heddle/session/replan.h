// Plans of the same model on other hardware.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session/session.h"

namespace heddle {

// A change of the session's hardware, and its name.
struct HardwareChange {
  std::string what;
  std::vector<ProblemEdit> edits;          // one after the other
  std::shared_ptr<const Cluster> cluster;  // the edits apply to this; null: the session's cluster
};

struct Replanned {
  std::string what;
  Problem problem;
  PlanResult result;
};

// Plans for the session's problem and then for each change of the hardware, starting from the first plan's
// decisions if they are possible there. Each problem also gets the others' plans, because a planner that
// stops early may find a worse plan on better hardware; so the rows differ only by the hardware's effect on
// the best known plans. The first row, "as it is", is the session's own problem. Nothing is measured. Errors
// name the change. Once planning is cancelled, no further row is planned: there may be fewer rows than changes.
Result<std::vector<Replanned>> replan(const Session& session, const std::vector<HardwareChange>& changes,
                                      const ProblemSettings& settings, const std::string& planner,
                                      const SearchSettings& search, const Control& control);

// The same decisions on another problem of the same units, with devices matched by name. nullopt if a device
// is missing there, or the decisions are infeasible.
std::optional<Plan> carry_over(const Problem& from, const Plan& plan, const Problem& to);

}  // namespace heddle
