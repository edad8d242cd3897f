// How good is a placement that somebody has?
#pragma once

#include <optional>
#include <string>

#include "heddle/session/placement.h"
#include "heddle/session/session.h"

namespace heddle {

struct Grade {
  Session session;  // its units keep to the placement, its costs know all segments of both plans
  Placement placement;
  PlanResult graded;  // the best plan found with every op where it is placed; the bound is that of any plan
  PlanResult best;    // the best plan found with any placement; never worse
};

// Plans the model with the placement that the text means (parse_placement()), in the best order that `planner` finds,
// and without it; both are timed by the one evaluator and checked by the one checker. `loaded`: what load_model(source)
// gave; null: it is loaded. The search's time limit holds for each of the two. Invalid input, with op and device, if a
// device cannot run what is placed on it; infeasible if the placement does not fit into a device's memory.
Result<Grade> grade(const ModelSpec& source, const LoadedModel* loaded, const std::string& placement,
                    std::optional<PlacementFormat> format, ProblemSettings settings,
                    const std::string& planner, const SearchSettings& search, const Control& control);

}  // namespace heddle
