// Building of constraint programs.
#include "heddle/solve/cp.h"

#include <algorithm>
#include <limits>

#include "cp_state.h"

namespace heddle {
namespace {

using References = google::protobuf::RepeatedField<int32_t>;

// CpLit::ref is CP-SAT's own form.
void add_refs(std::span<const CpLit> literals, References& refs) {
  for (const CpLit literal : literals) refs.Add(literal.ref);
}

// Each variable once, in order of index, without zeros. A sum of coefficients that overflows stays in two
// terms, which check_model() refuses.
std::vector<CpTerm> normalised(std::vector<CpTerm> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const CpTerm& a, const CpTerm& b) { return a.var.index < b.var.index; });
  std::vector<CpTerm> result;
  for (const CpTerm& term : terms) {
    int64_t sum = 0;
    const bool joins = !result.empty() && result.back().var == term.var &&
                       !__builtin_add_overflow(result.back().coefficient, term.coefficient, &sum);
    if (joins)
      result.back().coefficient = sum;
    else
      result.push_back(term);
  }
  std::erase_if(result, [](const CpTerm& t) { return t.coefficient == 0; });
  return result;
}

// `message` is a LinearExpressionProto or a LinearConstraintProto.
void set_terms(std::vector<CpTerm> terms, auto& message) {
  for (const CpTerm& term : normalised(std::move(terms))) {
    message.add_vars(term.var.index);
    message.add_coeffs(term.coefficient);
  }
}

void set(CpExpr expr, cp_sat::LinearExpressionProto& message) {
  set_terms(std::move(expr.terms), message);
  message.set_offset(expr.constant);
}

int64_t clamped(Wide value) {
  constexpr Wide kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, kLeast, kMost));
}

void set_linear(int64_t lower, CpExpr expr, int64_t upper, cp_sat::LinearConstraintProto& message) {
  set_terms(std::move(expr.terms), message);
  message.add_domain(clamped(Wide{lower} - expr.constant));
  message.add_domain(clamped(Wide{upper} - expr.constant));
}

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

cp_sat::ConstraintProto& CpModel::State::add(std::span<const CpLit> when) {
  cp_sat::ConstraintProto& constraint = *proto.add_constraints();
  add_refs(when, *constraint.mutable_enforcement_literal());
  return constraint;
}

CpModel::CpModel() : state_(std::make_unique<State>()) {}
CpModel::~CpModel() = default;
CpModel::CpModel(CpModel&&) noexcept = default;
CpModel& CpModel::operator=(CpModel&&) noexcept = default;

CpVar CpModel::add_integer(int64_t lower, int64_t upper, std::string name) {
  cp_sat::IntegerVariableProto& variable = *state_->proto.add_variables();
  variable.set_name(std::move(name));
  variable.add_domain(lower);
  variable.add_domain(upper);
  return {state_->proto.variables_size() - 1};
}

CpLit CpModel::add_literal(std::string name) { return {add_integer(0, 1, std::move(name)).index}; }

CpLit CpModel::true_literal() {
  if (!state_->always) state_->always = CpLit{add_integer(1, 1, "true").index};
  return *state_->always;
}

void CpModel::linear(int64_t lower, CpExpr expr, int64_t upper, std::span<const CpLit> when) {
  set_linear(lower, std::move(expr), upper, *state_->add(when).mutable_linear());
}

void CpModel::any_of(std::span<const CpLit> literals, std::span<const CpLit> when) {
  add_refs(literals, *state_->add(when).mutable_bool_or()->mutable_literals());
}

void CpModel::all_of(std::span<const CpLit> literals, std::span<const CpLit> when) {
  add_refs(literals, *state_->add(when).mutable_bool_and()->mutable_literals());
}

void CpModel::exactly_one(std::span<const CpLit> literals) {
  add_refs(literals, *state_->add({}).mutable_exactly_one()->mutable_literals());
}

void CpModel::at_most_one(std::span<const CpLit> literals) {
  add_refs(literals, *state_->add({}).mutable_at_most_one()->mutable_literals());
}

void CpModel::maximum(CpExpr target, std::vector<CpExpr> exprs) {
  cp_sat::LinearArgumentProto& maximum = *state_->add({}).mutable_lin_max();
  set(std::move(target), *maximum.mutable_target());
  for (CpExpr& expr : exprs) set(std::move(expr), *maximum.add_exprs());
}

// For CP-SAT, an interval is a view of three expressions used by other constraints. A separate linear
// constraint ties them together (start + size == end), unless that is an identity.
CpInterval CpModel::interval(CpExpr start, CpExpr size, CpExpr end, std::span<const CpLit> when) {
  CpExpr sum(clamped(Wide{start.constant} + size.constant - end.constant));
  for (const CpExpr* part : {&start, &size, &end}) {
    for (const CpTerm& term : part->terms)
      sum.add(term.var, part == &end ? -term.coefficient : term.coefficient);
  }
  cp_sat::ConstraintProto& constraint = state_->add(when);
  cp_sat::ConstraintProto tie;
  *tie.mutable_enforcement_literal() = constraint.enforcement_literal();
  set_linear(0, std::move(sum), 0, *tie.mutable_linear());
  if (tie.linear().vars_size() > 0 || tie.linear().domain(0) != 0)
    state_->interval_sums.push_back(std::move(tie));
  set(std::move(start), *constraint.mutable_interval()->mutable_start());
  set(std::move(size), *constraint.mutable_interval()->mutable_size());
  set(std::move(end), *constraint.mutable_interval()->mutable_end());
  return {state_->proto.constraints_size() - 1};
}

void CpModel::no_overlap(std::span<const CpInterval> intervals) {
  auto& refs = *state_->add({}).mutable_no_overlap()->mutable_intervals();
  for (const CpInterval interval : intervals) refs.Add(interval.index);
}

void CpModel::minimise(CpExpr objective) { set(std::move(objective), state_->objective.emplace()); }

void CpModel::hint(CpVar var, int64_t value) { state_->hints[var.index] = value; }

}  // namespace heddle
