#include "prices.h"

#include <algorithm>
#include <cmath>

#include "heddle/solve/milp.h"

namespace heddle {
namespace {

double cheapest(const std::vector<std::vector<double>>& needs, const std::vector<double>& prices) {
  double best = kInfinity;
  for (const auto& need : needs) {
    double cost = 0;
    for (size_t k = 0; k < need.size(); ++k) cost += need[k] * prices[k];
    best = std::min(best, cost);
  }
  return best;
}

double supply_cost(const Fleet& fleet, const std::vector<double>& prices) {
  double sum = 0;
  for (size_t k = 0; k < prices.size(); ++k) sum += static_cast<double>(fleet.classes[k].count) * prices[k];
  return sum;
}

// Between two neighbouring break points every model's cheapest column stays the same. There the bound is a
// quotient of two linear functions of the price and thus monotone, so the best price is a break point.
std::vector<double> break_points(const DeviceNeeds& needs, size_t a, size_t b) {
  std::vector<double> points = {0, 1};
  for (const auto& model : needs) {
    std::vector<std::pair<double, double>> hull;
    std::vector<std::pair<double, double>> all;
    for (const auto& need : model) all.emplace_back(need[a], need[b]);
    std::sort(all.begin(), all.end());
    for (const auto& p : all) {
      if (!hull.empty() && p.second >= hull.back().second) continue;
      while (hull.size() >= 2) {
        const auto &u = hull[hull.size() - 2], &v = hull.back();
        if ((v.first - u.first) * (p.second - u.second) - (v.second - u.second) * (p.first - u.first) > 0)
          break;
        hull.pop_back();
      }
      hull.push_back(p);
    }
    for (size_t i = 0; i + 1 < hull.size(); ++i) {
      const double left = hull[i + 1].first - hull[i].first, down = hull[i].second - hull[i + 1].second;
      points.push_back(down / (down + left));
    }
  }
  return points;
}

// Prices from the dual of the LP over columns; empty if the solver has no answer.
std::vector<double> dual_prices(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                                const Deadline& deadline) {
  const auto classes = fleet.classes.size();
  const bool max_min = goal.objective == FleetObjective::kMaxMin;
  const bool goodput = goal.objective == FleetObjective::kGoodput;
  double highest = 0, load = 0;  // for scaling: the largest need of a column, and the total load
  for (const auto& model : needs)
    for (const auto& need : model)
      for (const double n : need) highest = std::max(highest, n);
  for (const double l : goal.load) load += l;
  double device = 0;
  for (const auto& c : fleet.classes) device = std::max(device, device_cost(c, goal.objective));
  Milp dual;
  std::vector<Var> price, unit;
  for (size_t k = 0; k < classes; ++k) {
    const auto count = static_cast<double>(fleet.classes[k].count);
    // kMaxMin: shares of the devices' total price. kGoodput: worth of a device in `1 / highest` requests.
    // kCost and kPower: worth of a scarce device beyond its cost; a limit of a million times the cost
    // suffices.
    price.push_back(dual.add_continuous(0, max_min ? 1 : goodput ? kNoBound : 1e6));
    if (!max_min) dual.add_cost(price[k], count / (highest * load));
  }
  for (size_t m = 0; m < needs.size(); ++m) {
    unit.push_back(dual.add_continuous(0, goodput ? 1 : kNoBound));
    dual.add_cost(unit[m], -goal.load[m] / load);
  }
  if (max_min) {
    std::vector<Term> sum;
    for (const auto& p : price) sum.push_back({p, 1});
    dual.equal(sum, 1);
  }
  for (size_t m = 0; m < needs.size(); ++m) {
    for (const auto& need : needs[m]) {
      // unit <= price * need
      std::vector<Term> row = {{unit[m], 1}};
      double fixed = 0;
      for (size_t k = 0; k < classes; ++k) {
        const auto count = static_cast<double>(std::max<int64_t>(fleet.classes[k].count, 1));
        row.push_back({price[k], max_min ? -need[k] / highest * (static_cast<double>(fleet.devices()) / count)
                                         : -need[k] / highest});
        if (device > 0) fixed += device_cost(fleet.classes[k], goal.objective) / device * need[k] / highest;
      }
      dual.at_most(std::move(row), fixed);
    }
  }
  SolveOptions options;
  options.deadline = deadline;
  const auto solved = solve(dual, options);
  if (!solved.ok() || !solved->has_values()) return {};
  std::vector<double> prices(classes, 0);
  for (size_t k = 0; k < classes; ++k) {
    const double v = std::max(0.0, solved->values[static_cast<size_t>(price[k].index)]);
    const auto count = static_cast<double>(std::max<int64_t>(fleet.classes[k].count, 1));
    prices[k] = max_min ? v / count : goodput ? v / highest : v * device;
  }
  return prices;
}

}  // namespace

DeviceNeeds device_needs(const Fleet& fleet, const std::vector<std::vector<Column>>& columns) {
  DeviceNeeds needs;
  for (const auto& model : columns) {
    std::vector<std::vector<double>> all;
    for (const auto& column : model) {
      std::vector<double> need;
      for (size_t k = 0; k < fleet.classes.size(); ++k)
        need.push_back(column.devices_per_rate(static_cast<int>(k)));
      all.push_back(std::move(need));
    }
    std::sort(all.begin(), all.end());
    std::vector<std::vector<double>> kept;
    for (const auto& need : all) {
      const bool dominated = std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
        for (size_t i = 0; i < k.size(); ++i)
          if (k[i] > need[i]) return false;
        return true;
      });
      if (!dominated) kept.push_back(need);
    }
    needs.push_back(std::move(kept));
  }
  return needs;
}

double bound_at(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                const std::vector<double>& prices) {
  const double supply = supply_cost(fleet, prices);
  double sum = 0;
  switch (goal.objective) {
    case FleetObjective::kMaxMin:
      // rate_d >= load_d * z for all d costs at least z * sum load_d * cheapest_d; the budget is `supply`.
      for (size_t m = 0; m < needs.size(); ++m) sum += goal.load[m] * cheapest(needs[m], prices);
      return sum > 0 ? supply / sum : kInfinity;
    case FleetObjective::kGoodput:
      for (size_t m = 0; m < needs.size(); ++m)
        sum += goal.load[m] * std::max(0.0, 1 - cheapest(needs[m], prices));
      return supply + sum;
    case FleetObjective::kCost:
    case FleetObjective::kPower: {
      auto full = prices;
      for (size_t k = 0; k < full.size(); ++k) full[k] += device_cost(fleet.classes[k], goal.objective);
      for (size_t m = 0; m < needs.size(); ++m) sum += goal.load[m] * cheapest(needs[m], full);
      return std::max(0.0, sum - supply);
    }
  }
  return kInfinity;
}

PriceBound best_price_bound(const Fleet& fleet, const DeviceNeeds& needs, const FleetGoal& goal,
                            const Deadline& deadline) {
  const auto classes = fleet.classes.size();
  const bool more = more_is_better(goal.objective);
  PriceBound best{more ? kInfinity : 0, std::vector<double>(classes, 0), "no better bound was found"};
  const auto offer = [&](const std::vector<double>& prices, const char* reason) {
    if (prices.size() != classes) return;
    const double value = bound_at(fleet, needs, goal, prices);
    if (std::isfinite(value) && (more ? value < best.value : value >= best.value))
      best = {value, prices, reason};
  };
  std::vector<size_t> present;
  for (size_t k = 0; k < classes; ++k)
    if (fleet.classes[k].count > 0) present.push_back(k);
  if (goal.objective == FleetObjective::kMaxMin && present.size() <= 2) {
    const size_t a = present.front(), b = present.back();
    for (const double point : break_points(needs, a, b)) {
      std::vector<double> prices(classes, 0);
      prices[a] = point;
      prices[b] = a == b ? 1 : 1 - point;
      offer(prices, "prices of the classes at which no mix of columns serves more");
    }
    return best;
  }
  offer(std::vector<double>(classes, more ? 1 : 0),
        more ? "even prices of the classes" : "devices' own costs");
  offer(dual_prices(fleet, needs, goal, deadline), "prices of the classes from the dual linear program");
  return best;
}

}  // namespace heddle
