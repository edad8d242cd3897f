#include "column_model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heddle {
namespace {

constexpr double kNearPrice = 0.25;     // relative: columns more expensive than this stay out of the MILP
constexpr size_t kMaxMilpColumns = 60;  // per model

double price_of(const Column& column, const std::vector<double>& prices) {
  double sum = 0;
  for (size_t k = 0; k < prices.size(); ++k) sum += prices[k] * column.devices_per_rate(static_cast<int>(k));
  return sum;
}

}  // namespace

std::vector<std::vector<Column>> near_columns(const FleetTask& task, const std::vector<double>& prices) {
  std::vector<std::vector<Column>> near;
  for (const auto& all : task.columns) {
    std::vector<std::pair<double, size_t>> order;
    for (size_t c = 0; c < all.size(); ++c) order.emplace_back(price_of(all[c], prices), c);
    std::sort(order.begin(), order.end());
    std::vector<Column> kept;
    for (const auto& [price, c] : order)
      if (kept.size() < 8 || (kept.size() < kMaxMilpColumns && price <= order[0].first * (1 + kNearPrice)))
        kept.push_back(all[c]);
    near.push_back(std::move(kept));
  }
  return near;
}

ColumnModel::ColumnModel(const FleetTask& task, const std::vector<std::vector<Column>>& columns,
                         const std::vector<std::vector<Counts>>* base) {
  const auto& fleet = task.fleet;
  const auto objective = task.goal.objective;
  supply.resize(fleet.classes.size());
  const double unit = unit_of(task);
  Var level;
  if (objective == FleetObjective::kMaxMin) {
    level = milp.add_continuous(0, kNoBound, "z");
    milp.add_cost(level, -1);
  }
  for (size_t m = 0; m < columns.size(); ++m) {
    rate.emplace_back();
    pools.emplace_back();
    std::map<std::pair<int, int>, std::vector<Term>> bins;
    std::vector<Term> served;
    for (size_t c = 0; c < columns[m].size(); ++c) {
      const auto& column = columns[m][c];
      rate[m].push_back(milp.add_continuous(0, kNoBound));
      served.push_back({rate[m][c], 1});
      pools[m].emplace_back();
      for (int k = 0; k < column.stages; ++k) {
        const auto& s = column.stage[static_cast<size_t>(k)];
        const double least = base ? static_cast<double>((*base)[m][c][static_cast<size_t>(k)]) : 0;
        const double most =
            static_cast<double>(fleet.classes[static_cast<size_t>(s.device_class)].count * s.share);
        const auto n = milp.add_integer(least, most);
        pools[m][c].push_back(n);
        milp.at_most({{rate[m][c], 1}, {n, -s.rate_per_s / unit}}, 0);
        bins[{k, s.device_class}].push_back({n, 1.0 / s.share});
      }
    }
    for (auto& [key, terms] : bins) {
      auto& of_class = supply[static_cast<size_t>(key.second)];
      const auto& dc = fleet.classes[static_cast<size_t>(key.second)];
      // Whole devices need a variable only if pools may hold fractions of devices.
      if (std::all_of(terms.begin(), terms.end(), [](const Term& t) { return t.coefficient == 1; })) {
        of_class.insert(of_class.end(), terms.begin(), terms.end());
        continue;
      }
      const auto devices = milp.add_integer(0, static_cast<double>(dc.count));
      terms.push_back({devices, -1});
      milp.at_most(std::move(terms), 0);
      of_class.push_back({devices, 1});
    }
    // The level is measured in multiples of the bound.
    add_demand(milp, objective, std::move(served), task.goal.load[m] / unit,
               {level, -task.goal.load[m] * task.bound.value / unit});
  }
  for (size_t k = 0; k < supply.size(); ++k) {
    const double cost = device_cost(fleet.classes[k], objective);
    if (cost > 0)
      for (const auto& t : supply[k]) milp.add_cost(t.var, cost * t.coefficient);
    if (!supply[k].empty()) milp.at_most(supply[k], static_cast<double>(fleet.classes[k].count));
  }
}

void add_demand(Milp& milp, FleetObjective objective, std::vector<Term> rates, double load, const Term& level,
                const std::string& row_name, const std::string& good_name) {
  if (objective == FleetObjective::kMaxMin) {
    rates.push_back(level);
  } else if (objective == FleetObjective::kGoodput) {
    const auto good = milp.add_continuous(0, load, good_name);
    milp.add_cost(good, -1);
    rates.push_back({good, -1});
  }
  milp.at_least(std::move(rates), more_is_better(objective) ? 0 : load, row_name);
}

SolveOptions solve_options(const FleetPlanOptions& options, double rel_gap) {
  SolveOptions solve;
  solve.deadline = options.deadline;
  solve.threads = options.threads;
  solve.seed = options.seed;
  solve.rel_gap = rel_gap;
  return solve;
}

std::vector<std::vector<double>> fractional_mix(const FleetTask& task,
                                                const std::vector<std::vector<Column>>& columns) {
  const auto& fleet = task.fleet;
  const auto objective = task.goal.objective;
  const double unit = ColumnModel::unit_of(task);
  Milp lp;
  std::vector<std::vector<Var>> rate(columns.size());
  std::vector<std::vector<Term>> supply(fleet.classes.size());
  Var level;
  if (objective == FleetObjective::kMaxMin) {
    level = lp.add_continuous(0, kNoBound);
    lp.add_cost(level, -1);
  }
  for (size_t m = 0; m < columns.size(); ++m) {
    std::vector<Term> served;
    for (const auto& column : columns[m]) {
      const auto x = lp.add_continuous(0, kNoBound);
      rate[m].push_back(x);
      served.push_back({x, 1});
      double cost = 0;
      for (size_t k = 0; k < supply.size(); ++k) {
        // As a share of the class, so that the coefficients do not grow with the fleet.
        const double devices = unit * column.devices_per_rate(static_cast<int>(k));
        if (!(devices > 0)) continue;
        supply[k].push_back({x, devices / static_cast<double>(std::max<int64_t>(fleet.classes[k].count, 1))});
        cost += devices * device_cost(fleet.classes[k], objective);
      }
      if (cost > 0) lp.add_cost(x, cost);
    }
    const double load = task.goal.load[m] / unit;
    add_demand(lp, objective, std::move(served), load, {level, -load * task.bound.value});
  }
  for (size_t k = 0; k < supply.size(); ++k)
    if (!supply[k].empty()) lp.at_most(supply[k], fleet.classes[k].count > 0 ? 1 : 0);
  SolveOptions options;
  options.deadline = task.options.deadline;
  const auto solved = solve(lp, options);
  if (!solved.ok() || !solved->has_values()) return {};
  std::vector<std::vector<double>> mix(columns.size());
  for (size_t m = 0; m < columns.size(); ++m)
    for (const auto& x : rate[m]) mix[m].push_back(unit * solved->values[static_cast<size_t>(x.index)]);
  return mix;
}

double ColumnModel::unit_of(const FleetTask& task) {
  double sum = 0;
  for (const double l : task.goal.load) sum += l;
  return task.goal.objective == FleetObjective::kMaxMin ? std::max(1e-9, sum * task.bound.value) : sum;
}

double ColumnModel::value(const FleetTask& task, double minimised) const {
  if (task.goal.objective == FleetObjective::kMaxMin) return -minimised * task.bound.value;
  return task.goal.objective == FleetObjective::kGoodput ? -minimised * unit_of(task) : minimised;
}

std::vector<std::vector<Counts>> ColumnModel::counts(const std::vector<double>& values) const {
  std::vector<std::vector<Counts>> all;
  for (const auto& model : pools) {
    all.emplace_back();
    for (const auto& column : model) {
      Counts to{};
      bool some = true;
      for (size_t k = 0; k < column.size(); ++k) {
        to[k] = std::llround(values[static_cast<size_t>(column[k].index)]);
        some = some && to[k] > 0;
      }
      all.back().push_back(some ? to : Counts{});
    }
  }
  return all;
}

}  // namespace heddle
