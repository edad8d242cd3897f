// The MILP over columns: a rate for each column, virtual devices for each of its pools, and whole devices for
// each (model, partition position, class) whose pools may hold fractions. It minimises; kMaxMin and kGoodput
// enter with their sign reversed.
#pragma once

#include <array>
#include <vector>

#include "heddle/solve/milp.h"
#include "planner_parts.h"

namespace heddle {

using Counts = std::array<int64_t, kMaxPartitions>;  // virtual devices of a column's pools

struct ColumnModel {
  Milp milp;
  std::vector<std::vector<Var>> rate;                // [model][column], in unit_of() requests/s
  std::vector<std::vector<std::vector<Var>>> pools;  // [model][column][stage]
  std::vector<std::vector<Term>> supply;             // [class]: number of whole devices used

  // `base` gives lower bounds on the pools' sizes; null: none.
  ColumnModel(const FleetTask& task, const std::vector<std::vector<Column>>& columns,
              const std::vector<std::vector<Counts>>* base);

  // The unit of rates, from the bound or the load: it keeps the solver's numbers near 1.
  static double unit_of(const FleetTask& task);
  // The plan's objective value, from the MILP's.
  double value(const FleetTask& task, double minimised) const;
  // The pools of a solution. A column with an empty pool counts as unused.
  std::vector<std::vector<Counts>> counts(const std::vector<double>& values) const;
};

// Adds the row by which the sum of these rates serves the load: for kMaxMin the level's share of it (`level`, with
// a negative coefficient), for kGoodput as much of it as counts, otherwise all.
void add_demand(Milp& milp, FleetObjective objective, std::vector<Term> rates, double load, const Term& level,
                const std::string& row_name = {}, const std::string& good_name = {});

SolveOptions solve_options(const FleetPlanOptions& options, double rel_gap);

// Solves the LP relaxation with fractional virtual devices; returns the columns' rates, 1/s, [model][column].
// It has one variable per column and one row per model and class, so its work depends on neither the pools
// nor the devices. Empty: the solver has no answer.
std::vector<std::vector<double>> fractional_mix(const FleetTask& task,
                                                const std::vector<std::vector<Column>>& columns);

// The cheapest columns of each model at these prices, cheapest first.
std::vector<std::vector<Column>> near_columns(const FleetTask& task, const std::vector<double>& prices);

}  // namespace heddle
