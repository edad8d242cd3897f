// Small random models of shapes that releases of the solvers have answered wrongly, with the true answer by
// trying all points. The models are Heddle's own; the issues named here only describe the shapes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "heddle/base/random.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/milp.h"

namespace heddle {

enum class ModelShape {
  kIntegerRows,              // rows of integers, some enabled by a binary
  kContinuousBesideInteger,  // columns of one row beside integers: HiGHS 1.14, issues 2957, 3043, 3073, 3094
  kAtMostOneBesideRows,      // rows over literals that exclude each other: CP-SAT 9.15, issue 5293
  kEnforcedRows,             // rows enforced by several literals, few solutions: CP-SAT 9.15, issue 5274
};
inline constexpr int kModelShapes = 4;
// "continuous columns beside integers".
const char* model_shape_name(ModelShape shape);

// Minimise cost'x + constant. Bounds, sides and constant are in 1/unit, costs and coefficients are plain.
// There are continuous variables only in models of unit > 1; then an optimum lies on the grid of 1/unit.
struct SmallModel {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();  // as a side, with its sign: no limit
  struct Variable {
    int64_t lower = 0, upper = 1, cost = 0;
    bool continuous = false;
  };
  struct Row {
    int64_t lower = -kNone, upper = kNone;
    std::vector<int64_t> coefficients;  // by variable
    std::vector<CpLit> when;            // the row holds only if all of these are true
  };
  struct Choice {
    std::vector<CpLit> literals;  // at most one of them is true
    bool exactly = false;         // or exactly one
  };
  std::vector<Variable> variables;
  std::vector<Row> rows;
  std::vector<Choice> choices;
  int64_t constant = 0, unit = 1;

  bool fits(std::span<const int64_t> x) const;
  int64_t objective(std::span<const int64_t> x) const;
  // The objective's least value in 1/unit; nothing: no point fits. O(points * entries).
  std::optional<int64_t> least() const;
};

SmallModel random_small_model(Random& random, ModelShape shape);
// The model in Heddle's own forms. Only a model of unit 1 has a CP form. Rows with literals and choices need it.
Milp to_milp(const SmallModel& model);
CpModel to_cp(const SmallModel& model);

}  // namespace heddle
