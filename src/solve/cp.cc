// Building of constraint programs.
#include "heddle/solve/cp.h"

#include <algorithm>

#include "cp_state.h"

namespace heddle {
namespace {

std::vector<CpLit> copy(std::span<const CpLit> literals) { return {literals.begin(), literals.end()}; }

}  // namespace

CpExpr& CpExpr::add(CpVar var, int64_t coefficient) {
  terms.push_back({var, coefficient});
  return *this;
}

CpExpr& CpExpr::add(CpLit literal, int64_t coefficient) {
  if (!literal.negated()) return add(literal.var(), coefficient);
  add(coefficient);
  return add(literal.var(), -coefficient);
}

CpExpr& CpExpr::add(int64_t value) {
  constant += value;
  return *this;
}

CpExpr normalised(const CpExpr& expr) {
  CpExpr result(expr.constant);
  std::vector<CpTerm> terms = expr.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const CpTerm& a, const CpTerm& b) { return a.var.index < b.var.index; });
  for (const CpTerm& term : terms) {
    if (!result.terms.empty() && result.terms.back().var == term.var) {
      result.terms.back().coefficient += term.coefficient;
    } else {
      result.terms.push_back(term);
    }
  }
  std::erase_if(result.terms, [](const CpTerm& t) { return t.coefficient == 0; });
  return result;
}

CpModel::CpModel() : state_(std::make_unique<State>()) {}
CpModel::~CpModel() = default;
CpModel::CpModel(CpModel&&) noexcept = default;
CpModel& CpModel::operator=(CpModel&&) noexcept = default;

CpVar CpModel::add_integer(int64_t lower, int64_t upper, std::string name) {
  state_->variables.push_back({lower, upper, std::move(name)});
  return {static_cast<int32_t>(state_->variables.size() - 1)};
}

CpLit CpModel::add_literal(std::string name) { return {add_integer(0, 1, std::move(name)).index}; }

CpLit CpModel::true_literal() {
  if (!state_->has_always) {
    state_->always = {add_integer(1, 1, "true").index};
    state_->has_always = true;
  }
  return state_->always;
}

void CpModel::linear(int64_t lower, CpExpr expr, int64_t upper, std::span<const CpLit> when) {
  state_->constraints.push_back({copy(when), cp::Linear{lower, upper, std::move(expr)}});
}

void CpModel::any_of(std::span<const CpLit> literals, std::span<const CpLit> when) {
  state_->constraints.push_back({copy(when), cp::AnyOf{copy(literals)}});
}

void CpModel::all_of(std::span<const CpLit> literals, std::span<const CpLit> when) {
  state_->constraints.push_back({copy(when), cp::AllOf{copy(literals)}});
}

void CpModel::exactly_one(std::span<const CpLit> literals) {
  state_->constraints.push_back({{}, cp::ExactlyOne{copy(literals)}});
}

void CpModel::at_most_one(std::span<const CpLit> literals) {
  state_->constraints.push_back({{}, cp::AtMostOne{copy(literals)}});
}

void CpModel::maximum(CpExpr target, std::vector<CpExpr> exprs) {
  state_->constraints.push_back({{}, cp::Maximum{std::move(target), std::move(exprs)}});
}

CpInterval CpModel::interval(CpExpr start, CpExpr size, CpExpr end, std::span<const CpLit> when) {
  state_->intervals.push_back(state_->constraints.size());
  state_->constraints.push_back(
      {copy(when), cp::Interval{std::move(start), std::move(size), std::move(end)}});
  return {static_cast<int32_t>(state_->intervals.size() - 1)};
}

void CpModel::no_overlap(std::span<const CpInterval> intervals) {
  state_->constraints.push_back({{}, cp::NoOverlap{{intervals.begin(), intervals.end()}}});
}

void CpModel::cumulative(std::span<const CpInterval> intervals, std::vector<CpExpr> demands,
                         CpExpr capacity) {
  state_->constraints.push_back(
      {{}, cp::Cumulative{{intervals.begin(), intervals.end()}, std::move(demands), std::move(capacity)}});
}

void CpModel::circuit(std::span<const Arc> arcs) {
  state_->constraints.push_back({{}, cp::Circuit{{arcs.begin(), arcs.end()}}});
}

void CpModel::minimise(CpExpr objective) { state_->objective = std::move(objective); }

void CpModel::hint(CpVar var, int64_t value) { state_->hints.emplace_back(var, value); }

size_t CpModel::num_variables() const { return state_->variables.size(); }
size_t CpModel::num_constraints() const { return state_->constraints.size(); }

}  // namespace heddle
