// Steps of large-neighbourhood search on a problem, from a plan to its candidates.
#pragma once

#include "core/plan_store.h"
#include "lns_search.h"

namespace heddle {

struct LnsResult {
  StopReason stop = StopReason::kFinished;
  bool ran = false;  // false: CP-SAT cannot be loaded, or `start` uses other devices
  LnsSearch::Counts counts;
};

// From `start` until the deadline, until `stop_at_us` is reached, or until many steps in a row found nothing;
// without a deadline the steps are limited, too. What is better goes to `offer`, which says whether it is
// feasible: a plan whose tensors do not fit is given up.
using OfferPlan = std::function<bool(const Assignment& assignment)>;
LnsResult lns_rounds(const Problem& problem, const FlatProblem& flat, const PlannerOptions& options,
                     const Plan& start, double stop_at_us, const OfferPlan& offer);

}  // namespace heddle
