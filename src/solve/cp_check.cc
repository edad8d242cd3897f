// Independent checks of CP models and their solutions, in 128-bit arithmetic.
#include <fmt/format.h>

#include <algorithm>

#include "cp_state.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

using cp_sat::ConstraintProto;
using cp_sat::LinearExpressionProto;
using References = google::protobuf::RepeatedField<int32_t>;

// Expressions up to kLargest leave room for CP-SAT's 64-bit sums; kLargestValue: exact doubles.
constexpr int64_t kLargest = int64_t{1} << 61;
constexpr int64_t kLargestValue = int64_t{1} << 53;

Wide size_of(int64_t value) { return value < 0 ? -Wide{value} : Wide{value}; }

std::string text(Wide value) { return fmt::to_string(value); }

std::string variable_text(const cp_sat::IntegerVariableProto& variable, int index) {
  return "variable " + (variable.name().empty() ? std::to_string(index) : quote_text(variable.name()));
}

bool is_true(int32_t ref, std::span<const int64_t> values) {
  const CpLit literal{ref};
  return (values[static_cast<size_t>(literal.var().index)] == 1) != literal.negated();
}

class CpModelChecker {
 public:
  explicit CpModelChecker(const CpModel::State& state) : state_(state), proto_(state.proto) {}

  Status check() {
    for (int i = 0; i < proto_.variables_size(); ++i) {
      const auto& v = proto_.variables(i);
      place_ = variable_text(v, i);
      if (v.domain(0) > v.domain(1)) return wrong("the lower bound is above the upper bound");
      if (v.domain(0) < -kLargestValue || v.domain(1) > kLargestValue) return wrong("a bound is beyond 2^53");
    }
    for (int i = 0; i < proto_.constraints_size(); ++i) {
      place_ = "constraint " + std::to_string(i);
      HEDDLE_RETURN_IF_ERROR(literals(proto_.constraints(i).enforcement_literal()));
      HEDDLE_RETURN_IF_ERROR(constraint(proto_.constraints(i)));
    }
    place_ = "objective";
    if (state_.objective) HEDDLE_RETURN_IF_ERROR(expression(*state_.objective, state_.objective->offset()));
    place_ = "hint";
    for (const auto& [var, value] : state_.hints) HEDDLE_RETURN_IF_ERROR(variable(var));
    return {};
  }

 private:
  Error wrong(const std::string& what) const { return invalid_input(what).with_context(place_); }

  Status variable(int32_t index) const {
    if (index >= 0 && index < proto_.variables_size()) return {};
    return wrong("it names variable " + std::to_string(index) + " but the model has " +
                 std::to_string(proto_.variables_size()) + "; add the variable to this model first");
  }
  Status literals(const References& refs) const {
    for (const int32_t ref : refs) {
      const int32_t index = CpLit{ref}.var().index;
      HEDDLE_RETURN_IF_ERROR(variable(index));
      const auto& v = proto_.variables(index);
      if (v.domain(0) < 0 || v.domain(1) > 1)
        return wrong("variable " + std::to_string(index) + " is used as a literal but is not 0 or 1");
    }
    return {};
  }
  // `expr` is a LinearExpressionProto or a LinearConstraintProto.
  Status expression(const auto& expr, int64_t constant) const {
    for (const int32_t var : expr.vars()) HEDDLE_RETURN_IF_ERROR(variable(var));
    // The sum of absolute values, which bounds every partial sum in any order.
    Wide total = size_of(constant);
    for (int i = 0; i < expr.vars_size() && total <= kLargest; ++i) {
      const auto& v = proto_.variables(expr.vars(i));
      total += size_of(expr.coeffs(i)) * std::max({Wide{1}, size_of(v.domain(0)), size_of(v.domain(1))});
    }
    if (total <= kLargest) return {};
    return wrong("an expression may reach " + text(total) +
                 ", which is beyond 2^61; give tighter bounds or larger units");
  }
  Status affine(const LinearExpressionProto& expr) const {
    HEDDLE_RETURN_IF_ERROR(expression(expr, expr.offset()));
    if (expr.vars_size() <= 1) return {};
    return wrong("an expression has several variables where one is allowed; put the sum into a variable");
  }

  Status constraint(const ConstraintProto& c) const {
    switch (c.constraint_case()) {
      case ConstraintProto::kLinear:
        if (c.linear().domain(0) > c.linear().domain(1))
          return wrong("the lower bound is above the upper bound");
        return expression(c.linear(), 0);
      case ConstraintProto::kBoolOr:
        return literals(c.bool_or().literals());
      case ConstraintProto::kBoolAnd:
        return literals(c.bool_and().literals());
      case ConstraintProto::kExactlyOne:
        return literals(c.exactly_one().literals());
      case ConstraintProto::kAtMostOne:
        return literals(c.at_most_one().literals());
      case ConstraintProto::kLinMax:
        if (c.lin_max().exprs().empty()) return wrong("the maximum of nothing");
        HEDDLE_RETURN_IF_ERROR(affine(c.lin_max().target()));
        for (const auto& expr : c.lin_max().exprs()) HEDDLE_RETURN_IF_ERROR(affine(expr));
        return {};
      case ConstraintProto::kInterval:
        HEDDLE_RETURN_IF_ERROR(affine(c.interval().start()));
        HEDDLE_RETURN_IF_ERROR(affine(c.interval().size()));
        if (range_of(c.interval().size(), state_).first < 0)
          return wrong("an interval's size may be negative; raise its bounds");
        return affine(c.interval().end());
      default:
        for (const int32_t i : c.no_overlap().intervals()) {
          const bool known = i >= 0 && i < proto_.constraints_size() && proto_.constraints(i).has_interval();
          if (!known) return wrong("it names interval " + std::to_string(i) + ", which is not in the model");
        }
        return {};
    }
  }

  const CpModel::State& state_;
  const cp_sat::CpModelProto& proto_;
  std::string place_;
};

// Checks one constraint of a checked model whose enforcement literals are all true.
class CpConstraintChecker {
 public:
  CpConstraintChecker(const cp_sat::CpModelProto& model, std::span<const int64_t> values)
      : model_(model), values_(values) {}

  bool holds(const References& refs) const { return count(refs) == refs.size(); }

  // "", or a description of the violation.
  std::string check(const ConstraintProto& c) const {
    switch (c.constraint_case()) {
      case ConstraintProto::kLinear:
        return check_linear(c.linear());
      case ConstraintProto::kBoolOr:
        return count(c.bool_or().literals()) > 0 ? "" : "no literal is true";
      case ConstraintProto::kBoolAnd:
        return holds(c.bool_and().literals()) ? "" : "a literal is false";
      case ConstraintProto::kExactlyOne:
        return check_count(c.exactly_one().literals(), 1);
      case ConstraintProto::kAtMostOne:
        return check_count(c.at_most_one().literals(), 0);
      case ConstraintProto::kLinMax:
        return check_maximum(c.lin_max());
      case ConstraintProto::kInterval:
        return check_interval(c.interval());
      default:
        return check_no_overlap(c.no_overlap().intervals());
    }
  }

 private:
  Wide value(const LinearExpressionProto& expr) const { return evaluate(expr, values_); }
  int count(const References& refs) const {
    return static_cast<int>(
        std::count_if(refs.begin(), refs.end(), [&](int32_t ref) { return is_true(ref, values_); }));
  }
  std::string check_count(const References& refs, int least) const {
    const int n = count(refs);
    return n == 1 || n == least ? "" : std::to_string(n) + " literals are true instead of 1";
  }
  std::string check_linear(const cp_sat::LinearConstraintProto& c) const {
    Wide sum = 0;
    for (int i = 0; i < c.vars_size(); ++i)
      sum += Wide{c.coeffs(i)} * values_[static_cast<size_t>(c.vars(i))];
    if (sum >= c.domain(0) && sum <= c.domain(1)) return "";
    return "the sum is " + text(sum) + ", not within [" + text(c.domain(0)) + ", " + text(c.domain(1)) + "]";
  }
  std::string check_maximum(const cp_sat::LinearArgumentProto& c) const {
    Wide most = value(c.exprs(0));
    for (const auto& expr : c.exprs()) most = std::max(most, value(expr));
    const Wide target = value(c.target());
    return target == most ? "" : "the maximum is " + text(most) + ", not " + text(target);
  }
  std::string check_interval(const cp_sat::IntervalConstraintProto& c) const {
    const Wide start = value(c.start()), size = value(c.size()), end = value(c.end());
    if (start + size == end) return "";
    return "the interval starts at " + text(start) + ", lasts " + text(size) + " and ends at " + text(end);
  }
  std::string check_no_overlap(const References& intervals) const {
    std::vector<std::pair<Wide, Wide>> spans;  // start and end of those present
    for (const int32_t i : intervals) {
      const ConstraintProto& c = model_.constraints(i);
      if (holds(c.enforcement_literal()))
        spans.emplace_back(value(c.interval().start()), value(c.interval().end()));
    }
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
      if (spans[i - 1].second <= spans[i].first) continue;
      return "an interval ends at " + text(spans[i - 1].second) + " and the next starts at " +
             text(spans[i].first);
    }
    return "";
  }

  const cp_sat::CpModelProto& model_;
  std::span<const int64_t> values_;
};

}  // namespace

Wide evaluate(const LinearExpressionProto& expr, std::span<const int64_t> values) {
  Wide sum = expr.offset();
  for (int i = 0; i < expr.vars_size(); ++i)
    sum += Wide{expr.coeffs(i)} * values[static_cast<size_t>(expr.vars(i))];
  return sum;
}

std::pair<Wide, Wide> range_of(const LinearExpressionProto& expr, const CpModel::State& state) {
  std::pair<Wide, Wide> range{expr.offset(), expr.offset()};
  for (int i = 0; i < expr.vars_size(); ++i) {
    const auto& v = state.proto.variables(expr.vars(i));
    const Wide a = Wide{expr.coeffs(i)} * v.domain(0), b = Wide{expr.coeffs(i)} * v.domain(1);
    range.first += std::min(a, b);
    range.second += std::max(a, b);
  }
  return range;
}

Status check_model(const CpModel& model) { return CpModelChecker(model.state()).check(); }

std::string violation(const CpModel& model, std::span<const int64_t> values) {
  if (auto status = check_model(model); !status.ok()) return status.error().to_string();
  const auto& proto = model.state().proto;
  if (values.size() != static_cast<size_t>(proto.variables_size())) {
    return "there are " + std::to_string(values.size()) + " values for " +
           std::to_string(proto.variables_size()) + " variables";
  }
  for (int i = 0; i < proto.variables_size(); ++i) {
    const auto& v = proto.variables(i);
    const int64_t value = values[static_cast<size_t>(i)];
    if (value >= v.domain(0) && value <= v.domain(1)) continue;
    return variable_text(v, i) + " is " + text(value) + ", not within [" + text(v.domain(0)) + ", " +
           text(v.domain(1)) + "]";
  }
  const CpConstraintChecker checker(proto, values);
  for (int i = 0; i < proto.constraints_size(); ++i) {
    const ConstraintProto& constraint = proto.constraints(i);
    if (!checker.holds(constraint.enforcement_literal())) continue;
    const std::string what = checker.check(constraint);
    if (!what.empty()) return "constraint " + std::to_string(i) + ": " + what;
  }
  return "";
}

}  // namespace heddle
