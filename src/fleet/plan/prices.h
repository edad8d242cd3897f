// Proven bounds of fleet plans by prices. Each class has a price. A model's cheapest column at these prices
// is a lower limit on the cost of one request per second, with virtual devices counted as fractions. Together
// they limit what all devices can serve. By weak duality of the LP over columns this holds for any prices, so
// the bound does not depend on a solver's correctness.
#pragma once

#include <string>
#include <vector>

#include "columns.h"

namespace heddle {

// The objective of a plan.
struct FleetGoal {
  FleetObjective objective = FleetObjective::kMaxMin;
  std::vector<double> load;  // 1/s for each model; for kMaxMin its weight
};

// [model][column][class]: devices for one request per second. Columns that need at least as much of every
// class as another one are left out.
using DeviceNeeds = std::vector<std::vector<std::vector<double>>>;
DeviceNeeds device_needs(const Fleet& fleet, const std::vector<std::vector<Column>>& columns);

// The bound that these prices (one per class, not negative) prove. For kMaxMin and kGoodput no plan is above
// it, for kCost and kPower none below. O(columns * classes).
double bound_at(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                const std::vector<double>& prices);

struct PriceBound {
  double value = 0;
  std::vector<double> prices;
  std::string reason;
};
// Searches the best prices. For kMaxMin with at most two classes it tries all break points of the models'
// cheapest columns, otherwise it solves the dual LP. If the solver gives no answer in time, it returns the
// bound of equal prices.
PriceBound best_price_bound(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                            const Deadline& deadline);

}  // namespace heddle
