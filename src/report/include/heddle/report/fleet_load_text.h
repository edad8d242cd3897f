// Plans of fleets for simulated arrivals, and plans that follow a load.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/fleet/follow.h"
#include "heddle/fleet/goodput_plan.h"

namespace heddle {

// The arrivals that a plan was made for.
struct GoodputWords {
  std::string arrivals;  // "poisson traffic"; empty: none, and nothing is said of them
  std::string traffic;   // "poisson", "trace", "traces"
  double attainment = 0;
};

// Two lines.
std::string goodput_text(const Fleet& fleet, const GoodputPlan& found, const GoodputWords& words);
Json goodput_json(const GoodputPlan& found, const GoodputWords& words);

// The plan of a fleet beside that of the fleet with other counts or weights.
std::string changed_fleet_text(const Fleet& fleet, const GoodputPlan& found, const GoodputPlan& found_after,
                               const GoodputWords& words);
Json changed_fleet_json(const Fleet& fleet, const GoodputPlan& found, const Fleet& changed,
                        const GoodputPlan& found_after, const GoodputWords& words);

std::string follow_text(const FollowResult& result);
Json follow_json(const Fleet& fleet, const FollowResult& result, double window_s);

}  // namespace heddle
