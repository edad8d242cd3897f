// Proven bounds of fleet plans by prices. With a price for each class, what a model's cheapest column costs
// for a request per second, virtual devices counted as fractions, limits what all devices together can serve;
// this holds for every choice of prices (weak duality of the column linear program), so a bound needs no
// trust in a solver.
#pragma once

#include <string>
#include <vector>

#include "columns.h"

namespace heddle {

// What is wanted of a plan.
struct FleetGoal {
  FleetObjective objective = FleetObjective::kMaxMin;
  std::vector<double> load;  // 1/s of each model; for kMaxMin its weight
};

// [model][column][class]: devices for one request per second. Columns that need more of each class than
// another are left out.
using DeviceNeeds = std::vector<std::vector<std::vector<double>>>;
DeviceNeeds device_needs(const Fleet& fleet, const std::vector<std::vector<Column>>& columns);

// The bound that these prices (one a class, not negative) prove: for kMaxMin and kGoodput no plan is above
// it, for kCost and kPower none below. O(columns * classes).
double bound_at(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                const std::vector<double>& prices);

struct PriceBound {
  double value = 0;
  std::vector<double> prices;
  std::string reason;
};
// The best prices: for kMaxMin on at most two classes by walking the break points of the models' cheapest
// columns, else by the dual linear program. When the solver gives no answer in time the bound is that of even
// prices.
PriceBound best_price_bound(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                            const Deadline& deadline);

// Cost per hour or watts of one device, by the objective; 0 for the others.
double device_cost(const DeviceClass& device_class, FleetObjective objective);

}  // namespace heddle
