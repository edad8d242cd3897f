// Serialises a CpModel as a CpModelProto. Numbers are the field numbers of OR-Tools' cp_model.proto.
#include <algorithm>
#include <limits>
#include <map>

#include "cp_state.h"
#include "wire_format.h"

namespace heddle {
namespace {

using wire::Writer;

// LinearExpressionProto: vars 1, coeffs 2, offset 3.
Writer expression(const CpExpr& expr) {
  const CpExpr e = normalised(expr);
  std::vector<int64_t> vars, coefficients;
  for (const CpTerm& term : e.terms) {
    vars.push_back(term.var.index);
    coefficients.push_back(term.coefficient);
  }
  Writer w;
  if (!vars.empty()) w.packed_field(1, vars).packed_field(2, coefficients);
  if (e.constant != 0) w.varint_field(3, e.constant);
  return w;
}

int64_t clamped(Wide value) {
  constexpr Wide kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, kLeast, kMost));
}

// LinearConstraintProto: vars 1, coeffs 2, domain 3.
Writer linear(const cp::Linear& c) {
  const CpExpr e = normalised(c.expr);
  std::vector<int64_t> vars, coefficients;
  for (const CpTerm& term : e.terms) {
    vars.push_back(term.var.index);
    coefficients.push_back(term.coefficient);
  }
  Writer w;
  if (!vars.empty()) w.packed_field(1, vars).packed_field(2, coefficients);
  return w.packed_field(3, {clamped(Wide{c.lower} - e.constant), clamped(Wide{c.upper} - e.constant)});
}

// BoolArgumentProto: literals 1.
Writer literals(std::span<const CpLit> list) {
  std::vector<int64_t> refs;
  for (const CpLit literal : list) refs.push_back(literal.ref);
  Writer w;
  if (!refs.empty()) w.packed_field(1, refs);
  return w;
}

// The one field of a ConstraintProto that gives its kind.
struct Body {
  const CpModel::State& state;

  std::vector<int64_t> interval_refs(std::span<const CpInterval> intervals) const {
    std::vector<int64_t> refs;
    for (const CpInterval i : intervals) {
      refs.push_back(static_cast<int64_t>(state.intervals[static_cast<size_t>(i.index)]));
    }
    return refs;
  }

  Writer operator()(const cp::Linear& c) const { return Writer().message_field(12, linear(c)); }
  Writer operator()(const cp::AnyOf& c) const { return Writer().message_field(3, literals(c.literals)); }
  Writer operator()(const cp::AllOf& c) const { return Writer().message_field(4, literals(c.literals)); }
  Writer operator()(const cp::ExactlyOne& c) const {
    return Writer().message_field(29, literals(c.literals));
  }
  Writer operator()(const cp::AtMostOne& c) const { return Writer().message_field(26, literals(c.literals)); }
  // LinearArgumentProto: target 1, exprs 2.
  Writer operator()(const cp::Maximum& c) const {
    Writer w;
    w.message_field(1, expression(c.target));
    for (const CpExpr& e : c.exprs) w.message_field(2, expression(e));
    return Writer().message_field(27, w);
  }
  // IntervalConstraintProto: start 4, end 5, size 6.
  Writer operator()(const cp::Interval& c) const {
    Writer w;
    w.message_field(4, expression(c.start)).message_field(5, expression(c.end));
    return Writer().message_field(19, w.message_field(6, expression(c.size)));
  }
  // NoOverlapConstraintProto: intervals 1.
  Writer operator()(const cp::NoOverlap& c) const {
    Writer w;
    if (!c.intervals.empty()) w.packed_field(1, interval_refs(c.intervals));
    return Writer().message_field(20, w);
  }
  // CumulativeConstraintProto: capacity 1, intervals 2, demands 3.
  Writer operator()(const cp::Cumulative& c) const {
    Writer w;
    w.message_field(1, expression(c.capacity));
    if (!c.intervals.empty()) w.packed_field(2, interval_refs(c.intervals));
    for (const CpExpr& e : c.demands) w.message_field(3, expression(e));
    return Writer().message_field(22, w);
  }
  // CircuitConstraintProto: tails 3, heads 4, literals 5. Without arcs it has no effect, and no field is set.
  Writer operator()(const cp::Circuit& c) const {
    std::vector<int64_t> tails, heads, refs;
    for (const auto& arc : c.arcs) {
      tails.push_back(arc.tail);
      heads.push_back(arc.head);
      refs.push_back(arc.literal.ref);
    }
    if (tails.empty()) return {};
    Writer w;
    w.packed_field(3, tails).packed_field(4, heads).packed_field(5, refs);
    return Writer().message_field(15, w);
  }
};

// ConstraintProto: enforcement_literal 2 besides the body.
Writer enforced(std::span<const CpLit> when, Writer body) {
  std::vector<int64_t> refs;
  for (const CpLit literal : when) refs.push_back(literal.ref);
  if (!refs.empty()) body.packed_field(2, refs);
  return body;
}

// For CP-SAT, an interval is a view of three expressions used by other constraints. A separate linear
// constraint ties them together (start + size == end), unless that is an identity.
void fit_interval(const CpModel::State::Constraint& constraint, const CpModel::State& state, Writer& model) {
  const auto& c = std::get<cp::Interval>(constraint.what);
  CpExpr sum(clamped(Wide{c.start.constant} + c.size.constant - c.end.constant));
  for (const CpTerm& term : c.start.terms) sum.add(term.var, term.coefficient);
  for (const CpTerm& term : c.size.terms) sum.add(term.var, term.coefficient);
  for (const CpTerm& term : c.end.terms) sum.add(term.var, -term.coefficient);
  sum = normalised(sum);
  if (!sum.terms.empty() || sum.constant != 0) {
    model.message_field(3, enforced(constraint.when, Body{state}(cp::Linear{0, 0, sum})));
  }
}

}  // namespace

// CpModelProto: variables 2, constraints 3, objective 4, solution_hint 6.
std::string CpModel::to_bytes() const {
  const State& state = *state_;
  Writer model;
  for (const auto& v : state.variables) {  // IntegerVariableProto: name 1, domain 2
    Writer w;
    if (!v.name.empty()) w.bytes_field(1, v.name);
    model.message_field(2, w.packed_field(2, {v.lower, v.upper}));
  }
  for (const auto& constraint : state.constraints) {
    model.message_field(3, enforced(constraint.when, std::visit(Body{state}, constraint.what)));
  }
  // These come last, so that the indices of all other constraints are the same here and in OR-Tools.
  for (const size_t i : state.intervals) fit_interval(state.constraints[i], state, model);
  if (state.objective) {  // CpObjectiveProto: vars 1, offset 2, coeffs 4
    const CpExpr e = normalised(*state.objective);
    std::vector<int64_t> vars, coefficients;
    for (const CpTerm& term : e.terms) {
      vars.push_back(term.var.index);
      coefficients.push_back(term.coefficient);
    }
    Writer w;
    if (!vars.empty()) w.packed_field(1, vars).packed_field(4, coefficients);
    if (e.constant != 0) w.double_field(2, static_cast<double>(e.constant));
    model.message_field(4, w);
  }
  if (!state.hints.empty()) {  // PartialVariableAssignment: vars 1, values 2; each variable once
    std::map<int32_t, int64_t> hints;
    for (const auto& [var, value] : state.hints) hints[var.index] = value;
    std::vector<int64_t> vars, values;
    for (const auto& [var, value] : hints) {
      vars.push_back(var);
      values.push_back(value);
    }
    model.message_field(6, Writer().packed_field(1, vars).packed_field(2, values));
  }
  return model.bytes();
}

}  // namespace heddle
