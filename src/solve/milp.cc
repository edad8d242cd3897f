// Building of MILPs: equal terms of a row are summed; indicators become big-M rows on request.
#include "heddle/solve/milp.h"

#include <algorithm>
#include <cmath>

#include "milp_check.h"

namespace heddle {
namespace {

// The largest (sign 1) or smallest (sign -1) value of the terms within the variables' bounds, without the
// variable `left_out`. Infinite if a variable has no bound on the side that it needs.
double extreme(const Milp& model, const Milp::Row& row, Var left_out, double sign) {
  double sum = 0;
  for (const Term& term : row.terms) {
    if (term.var == left_out) continue;
    const auto& v = model.variables()[static_cast<size_t>(term.var.index)];
    const bool integer = v.kind != VarKind::kContinuous;
    const double bound = term.coefficient * sign > 0 ? (integer ? std::floor(v.upper) : v.upper)
                                                     : (integer ? std::ceil(v.lower) : v.lower);
    sum += term.coefficient * bound;
  }
  return sum;
}

}  // namespace

bool Milp::has(Var var, const char* where) {
  if (var.index >= 0 && static_cast<size_t>(var.index) < variables_.size()) return true;
  if (wrong_use_.empty()) {
    wrong_use_ = std::string(where) + " names variable " + std::to_string(var.index) + " but the model has " +
                 std::to_string(variables_.size()) + "; add the variable to this model first";
  }
  return false;
}

Var Milp::add(double lower, double upper, VarKind kind, std::string name) {
  variables_.push_back({lower, upper, 0, kind, std::move(name)});
  return {static_cast<int32_t>(variables_.size() - 1)};
}

Var Milp::add_continuous(double lower, double upper, std::string name) {
  return add(lower, upper, VarKind::kContinuous, std::move(name));
}

Var Milp::add_integer(double lower, double upper, std::string name) {
  return add(lower, upper, VarKind::kInteger, std::move(name));
}

Var Milp::add_binary(std::string name) { return add(0, 1, VarKind::kBinary, std::move(name)); }

void Milp::set_bounds(Var var, double lower, double upper) {
  if (!has(var, "set_bounds")) return;
  auto& v = variables_[static_cast<size_t>(var.index)];
  v.lower = lower;
  v.upper = upper;
}

void Milp::add_cost(Var var, double cost) {
  if (has(var, "add_cost")) variables_[static_cast<size_t>(var.index)].cost += cost;
}

Milp::Row Milp::make_row(double lower, std::vector<Term> terms, double upper, std::string name) {
  std::erase_if(terms, [&](const Term& t) { return !has(t.var, "a row"); });
  // Sorted by index, so that the solver's model does not depend on the order in which terms were added.
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.var.index < b.var.index; });
  size_t n = 0;
  for (const Term& term : terms) {
    if (n > 0 && terms[n - 1].var == term.var) {
      terms[n - 1].coefficient += term.coefficient;
    } else {
      terms[n++] = term;
    }
  }
  terms.resize(n);
  std::erase_if(terms, [](const Term& t) { return t.coefficient == 0; });
  return {lower, upper, std::move(terms), std::move(name)};
}

void Milp::add_row(double lower, std::vector<Term> terms, double upper, std::string name) {
  rows_.push_back(make_row(lower, std::move(terms), upper, std::move(name)));
}

void Milp::at_most(std::vector<Term> terms, double upper, std::string name) {
  add_row(-kNoBound, std::move(terms), upper, std::move(name));
}

void Milp::at_least(std::vector<Term> terms, double lower, std::string name) {
  add_row(lower, std::move(terms), kNoBound, std::move(name));
}

void Milp::equal(std::vector<Term> terms, double value, std::string name) {
  add_row(value, std::move(terms), value, std::move(name));
}

void Milp::add_indicator(Var binary, bool value, double lower, std::vector<Term> terms, double upper,
                         std::string name) {
  if (!has(binary, "an indicator")) return;
  indicators_.push_back({binary, value, make_row(lower, std::move(terms), upper, std::move(name))});
}

void Milp::set_start(Var var, double value) {
  if (!has(var, "set_start")) return;
  start_.emplace_back(var, value);
}

double Milp::objective(std::span<const double> values) const {
  double sum = constant_;
  for (size_t i = 0; i < variables_.size() && i < values.size(); ++i) {
    if (variables_[i].cost != 0) sum += variables_[i].cost * values[i];
  }
  return sum;
}

std::string Milp::name(Var var) const {
  const auto i = static_cast<size_t>(var.index);
  if (var.index >= 0 && i < variables_.size() && !variables_[i].name.empty()) return variables_[i].name;
  return "x" + std::to_string(var.index);
}

void Milp::make_continuous() {
  for (auto& v : variables_) v.kind = VarKind::kContinuous;
}

Result<Milp> Milp::without_indicators() const {
  HEDDLE_RETURN_IF_ERROR(check_model(*this));
  Milp model = *this;
  model.indicators_.clear();
  for (size_t i = 0; i < indicators_.size(); ++i) {
    const Var binary = indicators_[i].binary;
    const bool value = indicators_[i].value;
    const Row& row = indicators_[i].row;
    double own = 0;  // the binary's coefficient in the row itself
    for (const Term& term : row.terms) {
      if (term.var == binary) own = term.coefficient;
    }
    // Let r be the terms without the binary's. If the row is active, r <= limit; otherwise r <= extreme, the
    // smallest right-hand side that excludes nothing. The binary's coefficient switches between the two.
    for (const double sign : {1.0, -1.0}) {
      const double side = sign > 0 ? row.upper : row.lower;
      if (std::isinf(side) && side * sign > 0) continue;
      const double limit = side - (value ? own : 0);
      const double most = extreme(*this, row, binary, sign);
      if (!std::isfinite(most)) {
        return unsupported(std::string("the terms have no ") + (sign > 0 ? "upper" : "lower") +
                           " bound, so no finite constant switches the row off; give bounds to its variables")
            .with_context(indicator_name(*this, i));
      }
      if ((most - limit) * sign <= 0) continue;  // always holds
      Row big{-kNoBound, kNoBound, row.terms, row.name};
      std::erase_if(big.terms, [&](const Term& t) { return t.var == binary; });
      big.terms.push_back({binary, value ? most - limit : limit - most});
      (sign > 0 ? big.upper : big.lower) = value ? most : limit;
      if (!big.name.empty()) big.name += sign > 0 ? "_upper" : "_lower";
      model.add_row(big.lower, std::move(big.terms), big.upper, std::move(big.name));
    }
  }
  return model;
}

}  // namespace heddle
