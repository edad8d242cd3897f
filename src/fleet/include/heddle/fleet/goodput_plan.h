// A fleet plan for requests in time under uneven arrivals, instead of for rates alone.
//
// A planner maximises rates and leaves a part of each SLO free, the margin, so that requests may wait. How much is best
// depends on the arrivals: a large margin costs rate, a small one loses requests in bursts. Here margins are chosen by
// simulation: the fleet's own and shares of the SLO from 0 to a half for all models, then shares for each model. Every
// candidate is planned, simulated on the same arrivals, and compared by the load up to which every model has the
// wanted share in time.
#pragma once

#include <string>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/goodput.h"

namespace heddle {

// Arrivals that a plan is for: generated, or recorded ones that must outlive the search.
struct GoodputLoad {
  Traffic traffic;
  const std::vector<Arrival>* recorded = nullptr;
};

struct GoodputPlanOptions {
  // Objective max-min; its deadline is that of the whole search. Without one the search ends after a fixed amount of
  // work, less than 2 s for 100 devices, so that the same input has the same plan.
  FleetPlanOptions planning;
  // Traffic, attainment, least requests of one simulation, first seed.
  GoodputOptions goodput = {.scheduler = SchedulerKind::kReservation, .precision = .002};
  int seeds = 2;  // simulations of each candidate that is left after the first look; of recorded arrivals one
  // Instead of goodput.traffic. With several, a candidate counts by the load of which it serves the fewest requests/s.
  std::vector<GoodputLoad> loads;
};

struct GoodputPlan {
  FleetPlan plan;    // with margins (ModelPlan::margin_us); its bound holds for plans without any margin
  double per_s = 0;  // requests of all models with the wanted share in time, mean over the seeds
  double usual_per_s = 0;  // the same of the plan with the fleet's own margins
  int tried = 0;           // candidates
};

// At the deadline the best so far, at the least the plan with the fleet's own margins. Errors: those of
// plan_fleet() and goodput(). O(candidates x (plan_fleet() + seeds x goodput())).
Result<GoodputPlan> plan_for_goodput(const Fleet& fleet, const std::string& planner,
                                     const GoodputPlanOptions& options);

}  // namespace heddle
