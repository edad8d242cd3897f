// A constraint program as a mixed-integer linear program.
#include <map>

#include "cp_state.h"
#include "heddle/solve/cross_check.h"

namespace heddle {
namespace {

using cp_sat::ConstraintProto;

class CpAsMilp {
 public:
  explicit CpAsMilp(const CpModel::State& state) : state_(state) {}

  Milp run() {
    for (const auto& v : state_.proto.variables()) {
      if (v.domain(0) == 0 && v.domain(1) == 1)
        milp_.add_binary(v.name());
      else
        milp_.add_integer(static_cast<double>(v.domain(0)), static_cast<double>(v.domain(1)), v.name());
    }
    for (const auto& constraint : state_.proto.constraints()) add(constraint);
    for (const auto& constraint : state_.interval_sums) add(constraint);
    if (state_.objective) {
      for (int i = 0; i < state_.objective->vars_size(); ++i)
        milp_.add_cost(Var{state_.objective->vars(i)}, static_cast<double>(state_.objective->coeffs(i)));
      milp_.add_constant(static_cast<double>(state_.objective->offset()));
    }
    return std::move(milp_);
  }

 private:
  struct Sum {
    std::vector<Term> terms;
    double constant = 0;

    Sum& add(const auto& expr, double sign) {
      for (int i = 0; i < expr.vars_size(); ++i)
        terms.push_back({Var{expr.vars(i)}, sign * static_cast<double>(expr.coeffs(i))});
      return *this;
    }
    Sum& add_expr(const cp_sat::LinearExpressionProto& expr, double sign) {
      constant += sign * static_cast<double>(expr.offset());
      return add(expr, sign);
    }
    Sum& add(CpLit literal, double sign) {
      terms.push_back({Var{literal.var().index}, literal.negated() ? -sign : sign});
      if (literal.negated()) constant += sign;
      return *this;
    }
  };
  using When = std::vector<CpLit>;

  static When literals(const google::protobuf::RepeatedField<int32_t>& refs) {
    When all;
    for (const int32_t ref : refs) all.push_back({ref});
    return all;
  }

  void row(double lower, Sum sum, double upper, const When& when) {
    lower -= sum.constant;
    upper -= sum.constant;
    if (when.empty()) return milp_.add_row(lower, std::move(sum.terms), upper);
    const CpLit on = when.size() == 1 ? when[0] : all_of(when);
    milp_.add_indicator(Var{on.var().index}, !on.negated(), lower, std::move(sum.terms), upper);
  }

  // A binary that is 1 if all of these are true.
  CpLit all_of(const When& when) {
    std::vector<int32_t> refs;
    for (const CpLit literal : when) refs.push_back(literal.ref);
    const auto [it, is_new] = conjunctions_.try_emplace(std::move(refs));
    if (!is_new) return it->second;
    it->second = {milp_.add_binary().index};
    Sum sum;
    for (const CpLit literal : when) sum.add(literal, 1);
    sum.add(it->second, -1);
    row(-kNoBound, std::move(sum), static_cast<double>(when.size()) - 1, {});
    return it->second;
  }

  void add(const ConstraintProto& c) {
    const When when = literals(c.enforcement_literal());
    Sum sum;
    switch (c.constraint_case()) {
      case ConstraintProto::kLinear:
        return row(limit(c.linear().domain(0)), std::move(sum.add(c.linear(), 1)),
                   limit(c.linear().domain(1)), when);
      case ConstraintProto::kBoolOr:
        for (const CpLit literal : when) sum.add(!literal, 1);
        return count(std::move(sum), literals(c.bool_or().literals()), 1, kNoBound);
      case ConstraintProto::kBoolAnd:
        for (const CpLit literal : literals(c.bool_and().literals())) {
          Sum either;
          for (const CpLit w : when) either.add(!w, 1);
          count(std::move(either), {literal}, 1, kNoBound);
        }
        return;
      case ConstraintProto::kExactlyOne:
        return count({}, literals(c.exactly_one().literals()), 1, 1);
      case ConstraintProto::kAtMostOne:
        return count({}, literals(c.at_most_one().literals()), -kNoBound, 1);
      case ConstraintProto::kLinMax:
        return maximum(c.lin_max());
      case ConstraintProto::kNoOverlap:
        for (int i = 0; i < c.no_overlap().intervals_size(); ++i) {
          for (int j = 0; j < i; ++j) no_overlap(c.no_overlap().intervals(j), c.no_overlap().intervals(i));
        }
        return;
      default:  // intervals: interval_sums has their rows
        return;
    }
  }

  // check_model() refuses sums beyond 2^61, so a side beyond it is no limit.
  static double limit(int64_t side) {
    constexpr int64_t kMost = int64_t{1} << 61;
    return side < -kMost ? -kNoBound : side > kMost ? kNoBound : static_cast<double>(side);
  }

  void count(Sum sum, const When& literals, double least, double most) {
    for (const CpLit literal : literals) sum.add(literal, 1);
    row(least, std::move(sum), most, {});
  }

  void maximum(const cp_sat::LinearArgumentProto& c) {
    Sum one;
    for (const auto& expr : c.exprs()) {
      Sum above;
      above.add_expr(c.target(), 1).add_expr(expr, -1);
      const CpLit is_largest{milp_.add_binary().index};
      one.add(is_largest, 1);
      row(-kNoBound, above, 0, {is_largest});
      row(0, std::move(above), kNoBound, {});
    }
    row(1, std::move(one), 1, {});
  }

  void no_overlap(int32_t a, int32_t b) {
    const CpLit a_first{milp_.add_binary().index};
    for (const bool forward : {true, false}) {
      const ConstraintProto& first = state_.proto.constraints(forward ? a : b);
      const ConstraintProto& second = state_.proto.constraints(forward ? b : a);
      When when{forward ? a_first : !a_first};
      for (const auto* c : {&first, &second}) {
        for (const CpLit literal : literals(c->enforcement_literal())) when.push_back(literal);
      }
      Sum gap;
      gap.add_expr(second.interval().start(), 1).add_expr(first.interval().end(), -1);
      row(0, std::move(gap), kNoBound, when);
    }
  }

  const CpModel::State& state_;
  Milp milp_;
  std::map<std::vector<int32_t>, CpLit> conjunctions_;
};

}  // namespace

Milp to_milp(const CpModel& model) { return CpAsMilp(model.state()).run(); }

}  // namespace heddle
