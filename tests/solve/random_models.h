// Random small integer models in three forms: as data for brute force, as a MILP and as a CP model.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"

namespace heddle {

inline constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

struct RandomRow {
  int64_t lower = -kNone, upper = kNone;  // +-kNone: no bound
  std::vector<int64_t> coefficients;
  int indicator = -1;  // the binary that enables it; -1: always on
  bool value = true;
};

struct Problem {
  std::vector<int64_t> lower, upper, cost;
  std::vector<RandomRow> rows;
  int64_t constant = 0;
  int binaries = 0;  // their number; they are the first variables

  bool on(const RandomRow& row, std::span<const int64_t> x) const {
    return row.indicator < 0 || (x[static_cast<size_t>(row.indicator)] == 1) == row.value;
  }
  bool fits(std::span<const int64_t> x) const {
    for (const RandomRow& row : rows) {
      if (!on(row, x)) continue;
      int64_t sum = 0;
      for (size_t i = 0; i < x.size(); ++i) sum += row.coefficients[i] * x[i];
      if (sum < row.lower || sum > row.upper) return false;
    }
    return true;
  }
  int64_t objective(std::span<const int64_t> x) const {
    int64_t sum = constant;
    for (size_t i = 0; i < x.size(); ++i) sum += cost[i] * x[i];
    return sum;
  }
};

inline Problem random_problem(Random& random) {
  Problem p;
  const auto n = static_cast<size_t>(random.between(3, 6));
  p.binaries = static_cast<int>(random.between(0, 3));
  for (size_t i = 0; i < n; ++i) {
    const bool binary = i < static_cast<size_t>(p.binaries);
    p.lower.push_back(binary ? 0 : random.between(-2, 1));
    p.upper.push_back(binary ? 1 : p.lower.back() + random.between(0, 3));
    p.cost.push_back(random.between(-6, 6));
  }
  p.constant = random.between(-5, 5);
  const auto rows = random.between(1, 4);
  for (int64_t r = 0; r < rows; ++r) {
    RandomRow row;
    for (size_t i = 0; i < n; ++i) row.coefficients.push_back(random.chance(0.6) ? random.between(-5, 5) : 0);
    const int64_t side = random.between(-6, 8);
    const auto form = random.below(4);
    if (form != 0) row.upper = side;
    if (form == 0) row.lower = side;
    if (form == 1) row.lower = side - random.between(0, 5);
    if (p.binaries > 0 && random.chance(0.4)) {
      row.indicator = static_cast<int>(random.below(static_cast<uint64_t>(p.binaries)));
      row.value = random.chance(0.5);
    }
    p.rows.push_back(row);
  }
  return p;
}

inline double real(int64_t side) {
  return side == kNone ? kNoBound : side == -kNone ? -kNoBound : double(side);
}

inline Milp to_milp(const Problem& p) {
  Milp m;
  std::vector<Var> x;
  for (size_t i = 0; i < p.lower.size(); ++i) {
    const bool binary = i < static_cast<size_t>(p.binaries);
    x.push_back(binary ? m.add_binary() : m.add_integer(double(p.lower[i]), double(p.upper[i])));
    m.add_cost(x[i], double(p.cost[i]));
  }
  m.add_constant(double(p.constant));
  for (const RandomRow& row : p.rows) {
    std::vector<Term> terms;
    // Pass each coefficient in two parts, which the model must add up.
    for (size_t i = 0; i < x.size(); ++i) terms.push_back({x[i], double(row.coefficients[i]) - 1});
    for (size_t i = 0; i < x.size(); ++i) terms.push_back({x[i], 1});
    if (row.indicator < 0) {
      m.add_row(real(row.lower), terms, real(row.upper));
    } else {
      m.add_indicator(x[static_cast<size_t>(row.indicator)], row.value, real(row.lower), terms,
                      real(row.upper));
    }
  }
  return m;
}

inline CpModel to_cp(const Problem& p) {
  CpModel m;
  std::vector<CpVar> x;
  CpExpr objective(p.constant);
  for (size_t i = 0; i < p.lower.size(); ++i) {
    x.push_back(m.add_integer(p.lower[i], p.upper[i]));
    objective.add(x[i], p.cost[i]);
  }
  for (const RandomRow& row : p.rows) {
    CpExpr expr;
    for (size_t i = 0; i < x.size(); ++i) expr.add(x[i], row.coefficients[i]);
    std::vector<CpLit> when;
    if (row.indicator >= 0) {
      const CpLit literal{x[static_cast<size_t>(row.indicator)].index};
      when.push_back(row.value ? literal : !literal);
    }
    m.linear(row.lower, expr, row.upper, when);
  }
  m.minimise(objective);
  return m;
}

}  // namespace heddle
