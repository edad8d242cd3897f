// The program over columns: a rate for each column, virtual devices for each of its pools, whole devices for
// each (model, partition position, class) whose pools may hold fractions. Minimised; of kMaxMin and kGoodput
// the negative.
#pragma once

#include <array>
#include <vector>

#include "heddle/solve/milp.h"
#include "planner_parts.h"

namespace heddle {

using Counts = std::array<int64_t, kMaxPartitions>;  // virtual devices of a column's pools

struct ColumnModel {
  Milp milp;
  std::vector<std::vector<Var>> rate;                // [model][column], in unit_of() requests per second
  std::vector<std::vector<std::vector<Var>>> pools;  // [model][column][stage]
  std::vector<std::vector<Term>> supply;             // [class]: whole devices used

  // No pool is smaller than in `base` (null: any).
  ColumnModel(const FleetTask& task, const std::vector<std::vector<Column>>& columns,
              const std::vector<std::vector<Counts>>* base);

  // Rates are counted in what the bound or the load allows: numbers near 1 for the solver.
  static double unit_of(const FleetTask& task);
  // The plan's value of an objective of the program.
  double value(const FleetTask& task, double minimised) const;
  // The pools of a solution; a column counts when all of its pools do.
  std::vector<std::vector<Counts>> counts(const std::vector<double>& values) const;
};

// The rates of the columns, 1/s, [model][column], that the program mixes when pools may hold fractions of
// virtual devices: the same optimum with one variable a column and one row a model and a class, so that its
// work depends on neither the pools nor the devices. Empty: the solver has no answer.
std::vector<std::vector<double>> fractional_mix(const FleetTask& task,
                                                const std::vector<std::vector<Column>>& columns);

// The columns of each model that may matter at these prices: the cheapest, in their order of price.
std::vector<std::vector<Column>> near_columns(const FleetTask& task, const std::vector<double>& prices);

}  // namespace heddle
