#include "heddle/solve/small_models.h"

#include <algorithm>
#include <array>

#include "heddle/solve/cross_check.h"

namespace heddle {
namespace {

bool literal_holds(CpLit literal, std::span<const int64_t> x) {
  return (x[static_cast<size_t>(literal.var().index)] == 1) != literal.negated();
}

double side_of(int64_t value, int64_t unit) {
  if (value == SmallModel::kNone) return kNoBound;
  if (value == -SmallModel::kNone) return -kNoBound;
  return static_cast<double>(value) / static_cast<double>(unit);
}

// Draws one model.
class ModelDraw {
 public:
  explicit ModelDraw(Random& random) : random_(random) {}

  SmallModel integer_rows() {
    const auto n = static_cast<size_t>(random_.between(3, 6));
    binaries_ = static_cast<size_t>(random_.between(0, 3));
    for (size_t i = 0; i < n; ++i) {
      if (i < binaries_)
        add(0, 1, 6);
      else
        add_range(random_.between(-2, 1), random_.between(0, 3), 6);
    }
    model_.constant = random_.between(-5, 5);
    for (int64_t left = random_.between(1, 4); left > 0; --left) {
      SmallModel::Row& row = add_row(0.6, 5, random_.between(-6, 8));
      if (binaries_ > 0 && random_.chance(0.4)) row.when.push_back(literal());
    }
    return std::move(model_);
  }

  SmallModel continuous_beside_integer() {
    model_.unit = random_.chance(0.5) ? 2 : 5;
    const int64_t unit = model_.unit, integers = random_.between(1, 2), continuous = random_.between(1, 2);
    for (int64_t i = 0; i < integers; ++i) add_range(0, unit * random_.between(1, 6), 4);
    const int64_t rows = random_.between(1, 3);
    for (int64_t r = 0; r < rows; ++r) {
      SmallModel::Row row;
      for (int64_t i = 0; i < integers; ++i) row.coefficients.push_back(random_.between(-1, 2));
      const int64_t side = random_.between(-unit, 7 * unit);
      (random_.chance(0.7) ? row.lower : row.upper) = side;
      if (random_.chance(0.2)) row.lower = row.upper = side;
      model_.rows.push_back(std::move(row));
    }
    // Each continuous column is in one row, so for fixed integers the program is a network's: its vertices
    // lie on the grid of the sides.
    for (int64_t c = 0; c < continuous; ++c) {
      add_range(unit * random_.between(-1, 3), random_.between(0, 6 * unit), 5);
      model_.variables.back().continuous = true;
      const auto in = random_.below(static_cast<uint64_t>(rows));
      for (size_t r = 0; r < model_.rows.size(); ++r)
        model_.rows[r].coefficients.push_back(r != in ? 0 : random_.chance(0.8) ? 1 : -1);
    }
    return std::move(model_);
  }

  SmallModel at_most_one_beside_rows() {
    binaries_ = static_cast<size_t>(random_.between(4, 9));
    const int64_t most = std::array{4, 50, 5000}[random_.below(3)];
    for (size_t i = 0; i < binaries_; ++i) add(0, 1, most);
    for (int64_t left = random_.between(0, 2); left > 0; --left) add_range(random_.between(-3, 1), 3, most);
    for (int64_t left = random_.between(1, 4); left > 0; --left) {
      SmallModel::Choice choice{literals(static_cast<size_t>(random_.between(2, 4))), random_.chance(0.4)};
      model_.choices.push_back(std::move(choice));
    }
    for (int64_t left = random_.between(1, 5); left > 0; --left) {
      SmallModel::Row& row = add_row(0.7, most, random_.between(-most, 2 * most));
      if (random_.chance(0.3)) row.when = literals(static_cast<size_t>(random_.between(1, 2)));
    }
    return std::move(model_);
  }

  SmallModel enforced_rows() {
    binaries_ = static_cast<size_t>(random_.between(4, 8));
    const int64_t cost = random_.chance(0.4) ? 0 : 5;
    for (size_t i = 0; i < binaries_; ++i) add(0, 1, cost);
    for (int64_t left = random_.between(1, 3); left > 0; --left)
      add_range(random_.between(-4, 2), random_.between(1, 5), cost);
    for (int64_t left = random_.between(4, 9); left > 0; --left) {
      SmallModel::Row& row = add_row(0.4, 3, random_.between(-3, 4));
      if (random_.chance(0.3)) row.lower = row.upper = random_.between(-1, 2);
      row.when = literals(static_cast<size_t>(random_.between(0, 3)));
    }
    if (random_.chance(0.5)) model_.choices.push_back({literals(3), random_.chance(0.5)});
    return std::move(model_);
  }

 private:
  void add(int64_t lower, int64_t upper, int64_t most_cost) {
    model_.variables.push_back({lower, upper, random_.between(-most_cost, most_cost)});
  }
  void add_range(int64_t lower, int64_t size, int64_t most_cost) { add(lower, lower + size, most_cost); }

  SmallModel::Row& add_row(double density, int64_t most, int64_t side) {
    SmallModel::Row row;
    for (size_t i = 0; i < model_.variables.size(); ++i)
      row.coefficients.push_back(random_.chance(density) ? random_.between(-most, most) : 0);
    const auto form = random_.below(4);
    if (form != 0) row.upper = side;
    if (form == 0) row.lower = side;
    if (form == 1) row.lower = side - random_.between(0, most);
    model_.rows.push_back(std::move(row));
    return model_.rows.back();
  }

  CpLit literal() {
    const CpLit positive{static_cast<int32_t>(random_.below(binaries_))};
    return random_.chance(0.5) ? positive : !positive;
  }
  // Of different binaries, mostly positive.
  std::vector<CpLit> literals(size_t count) {
    std::vector<int32_t> all(binaries_);
    for (size_t i = 0; i < binaries_; ++i) all[i] = static_cast<int32_t>(i);
    random_.shuffle(all);
    std::vector<CpLit> some;
    for (size_t i = 0; i < count && i < binaries_; ++i)
      some.push_back(random_.chance(0.75) ? CpLit{all[i]} : !CpLit{all[i]});
    return some;
  }

  Random& random_;
  SmallModel model_;
  size_t binaries_ = 0;  // the first variables
};

}  // namespace

const char* model_shape_name(ModelShape shape) {
  static constexpr std::array<const char*, kModelShapes> kNames = {
      "rows of integers", "continuous columns beside integers", "rows over literals that exclude each other",
      "rows enforced by several literals"};
  return kNames[static_cast<size_t>(shape)];
}

bool SmallModel::fits(std::span<const int64_t> x) const {
  for (const Choice& choice : choices) {
    const auto count = std::ranges::count_if(choice.literals, [&](CpLit l) { return literal_holds(l, x); });
    if (count > 1 || (choice.exactly && count == 0)) return false;
  }
  for (const Row& row : rows) {
    if (!std::ranges::all_of(row.when, [&](CpLit l) { return literal_holds(l, x); })) continue;
    int64_t sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += row.coefficients[i] * x[i];
    if (sum < row.lower || sum > row.upper) return false;
  }
  return true;
}

int64_t SmallModel::objective(std::span<const int64_t> x) const {
  int64_t sum = constant;
  for (size_t i = 0; i < x.size(); ++i) sum += variables[i].cost * x[i];
  return sum;
}

std::optional<int64_t> SmallModel::least() const {
  std::vector<int64_t> x;
  for (const Variable& v : variables) x.push_back(v.lower);
  std::optional<int64_t> best;
  for (size_t i = 0; i < x.size();) {
    // A value that is not below the best is not looked at further.
    if (const int64_t value = objective(x); (!best || value < *best) && fits(x)) best = value;
    for (i = 0; i < x.size(); ++i) {
      const Variable& v = variables[i];
      x[i] += v.continuous ? 1 : unit;
      if (x[i] <= v.upper) break;
      x[i] = v.lower;
    }
  }
  return best;
}

SmallModel random_small_model(Random& random, ModelShape shape) {
  ModelDraw draw(random);
  switch (shape) {
    case ModelShape::kIntegerRows:
      return draw.integer_rows();
    case ModelShape::kContinuousBesideInteger:
      return draw.continuous_beside_integer();
    case ModelShape::kAtMostOneBesideRows:
      return draw.at_most_one_beside_rows();
    default:
      return draw.enforced_rows();
  }
}

Milp to_milp(const SmallModel& model) {
  if (model.unit == 1) return to_milp(to_cp(model));
  Milp milp;
  for (const auto& v : model.variables) {
    const double lower = side_of(v.lower, model.unit), upper = side_of(v.upper, model.unit);
    const Var var = v.continuous ? milp.add_continuous(lower, upper) : milp.add_integer(lower, upper);
    milp.add_cost(var, static_cast<double>(v.cost));
  }
  milp.add_constant(side_of(model.constant, model.unit));
  for (const auto& row : model.rows) {
    std::vector<Term> terms;
    for (size_t i = 0; i < row.coefficients.size(); ++i)
      terms.push_back({Var{static_cast<int32_t>(i)}, static_cast<double>(row.coefficients[i])});
    milp.add_row(side_of(row.lower, model.unit), std::move(terms), side_of(row.upper, model.unit));
  }
  return milp;
}

CpModel to_cp(const SmallModel& model) {
  CpModel cp;
  CpExpr objective(model.constant);
  std::vector<CpVar> x;
  for (const auto& v : model.variables) {
    x.push_back(cp.add_integer(v.lower, v.upper));
    objective.add(x.back(), v.cost);
  }
  for (const auto& choice : model.choices)
    choice.exactly ? cp.exactly_one(choice.literals) : cp.at_most_one(choice.literals);
  for (const auto& row : model.rows) {
    CpExpr sum;
    for (size_t i = 0; i < x.size(); ++i) sum.add(x[i], row.coefficients[i]);
    cp.linear(row.lower, std::move(sum), row.upper, row.when);
  }
  cp.minimise(std::move(objective));
  return cp;
}

}  // namespace heddle
