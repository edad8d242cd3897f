// Independent checks of CP models and their solutions, in 128-bit arithmetic.
#include <algorithm>
#include <map>
#include <set>

#include "cp_state.h"
#include "heddle/base/spelling.h"

namespace heddle {
namespace {

// Expressions up to kLargest leave room for CP-SAT's 64-bit sums; kLargestValue: exact doubles.
constexpr int64_t kLargest = int64_t{1} << 61;
constexpr int64_t kLargestValue = int64_t{1} << 53;

Wide size_of(int64_t value) { return value < 0 ? -Wide{value} : Wide{value}; }

std::string text(Wide value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

class Checker {
 public:
  explicit Checker(const CpModel::State& state) : state_(state) {}

  Status check() {
    for (size_t i = 0; i < state_.variables.size(); ++i) {
      const auto& v = state_.variables[i];
      place_ = "variable " + (v.name.empty() ? std::to_string(i) : quote_text(v.name));
      if (v.lower > v.upper) return wrong("the lower bound is above the upper bound");
      if (v.lower < -kLargestValue || v.upper > kLargestValue) return wrong("a bound is beyond 2^53");
    }
    for (size_t i = 0; i < state_.constraints.size(); ++i) {
      place_ = "constraint " + std::to_string(i);
      const auto& constraint = state_.constraints[i];
      HEDDLE_RETURN_IF_ERROR(literals(constraint.when));
      HEDDLE_RETURN_IF_ERROR(std::visit([&](const auto& what) { return one(what); }, constraint.what));
    }
    place_ = "objective";
    if (state_.objective) HEDDLE_RETURN_IF_ERROR(expression(*state_.objective));
    place_ = "hint";
    for (const auto& [var, value] : state_.hints) HEDDLE_RETURN_IF_ERROR(variable(var));
    return {};
  }

 private:
  Error wrong(const std::string& what) const { return Error(Code::kInvalidInput, what).with_context(place_); }

  Status variable(CpVar var) const {
    if (var.index >= 0 && static_cast<size_t>(var.index) < state_.variables.size()) return {};
    return wrong("it names variable " + std::to_string(var.index) + " but the model has " +
                 std::to_string(state_.variables.size()) + "; add the variable to this model first");
  }
  Status literals(std::span<const CpLit> list) const {
    for (const CpLit literal : list) {
      HEDDLE_RETURN_IF_ERROR(variable(literal.var()));
      const auto& v = state_.variables[static_cast<size_t>(literal.var().index)];
      if (v.lower < 0 || v.upper > 1) {
        return wrong("variable " + std::to_string(literal.var().index) +
                     " stands as a literal but is not 0 or 1");
      }
    }
    return {};
  }
  Status expression(const CpExpr& expr) const {
    for (const CpTerm& term : expr.terms) HEDDLE_RETURN_IF_ERROR(variable(term.var));
    // The sum of absolute values, which bounds every partial sum in any order.
    Wide total = size_of(expr.constant);
    for (const CpTerm& term : expr.terms) {
      const auto& v = state_.variables[static_cast<size_t>(term.var.index)];
      total += size_of(term.coefficient) * std::max({Wide{1}, size_of(v.lower), size_of(v.upper)});
      if (total > kLargest) break;
    }
    if (total > kLargest) {
      return wrong("an expression may reach " + text(total) +
                   ", which is beyond 2^61; give tighter bounds or larger units");
    }
    return {};
  }
  Status affine(const CpExpr& expr) const {
    HEDDLE_RETURN_IF_ERROR(expression(expr));
    if (normalised(expr).terms.size() > 1) {
      return wrong("an expression has several variables where one is allowed; put the sum into a variable");
    }
    return {};
  }
  Status known(std::span<const CpInterval> intervals) const {
    for (const CpInterval interval : intervals) {
      if (interval.index >= 0 && static_cast<size_t>(interval.index) < state_.intervals.size()) continue;
      return wrong("it names interval " + std::to_string(interval.index) + " but the model has " +
                   std::to_string(state_.intervals.size()));
    }
    return {};
  }

  Status one(const cp::Linear& c) const {
    if (c.lower > c.upper) return wrong("the lower bound is above the upper bound");
    return expression(c.expr);
  }
  Status one(const cp::AnyOf& c) const { return literals(c.literals); }
  Status one(const cp::AllOf& c) const { return literals(c.literals); }
  Status one(const cp::ExactlyOne& c) const { return literals(c.literals); }
  Status one(const cp::AtMostOne& c) const { return literals(c.literals); }
  Status one(const cp::Maximum& c) const {
    if (c.exprs.empty()) return wrong("the maximum of nothing");
    HEDDLE_RETURN_IF_ERROR(affine(c.target));
    for (const CpExpr& expr : c.exprs) HEDDLE_RETURN_IF_ERROR(affine(expr));
    return {};
  }
  Status one(const cp::Interval& c) const {
    HEDDLE_RETURN_IF_ERROR(affine(c.start));
    HEDDLE_RETURN_IF_ERROR(affine(c.size));
    if (range_of(c.size, state_).first < 0)
      return wrong("an interval's size may be negative; raise its bounds");
    return affine(c.end);
  }
  Status one(const cp::NoOverlap& c) const { return known(c.intervals); }
  Status one(const cp::Cumulative& c) const {
    HEDDLE_RETURN_IF_ERROR(known(c.intervals));
    if (c.demands.size() != c.intervals.size()) {
      return wrong(std::to_string(c.demands.size()) + " demands for " + std::to_string(c.intervals.size()) +
                   " intervals");
    }
    HEDDLE_RETURN_IF_ERROR(affine(c.capacity));
    for (const CpExpr& demand : c.demands) {
      HEDDLE_RETURN_IF_ERROR(affine(demand));
      if (range_of(demand, state_).first < 0) return wrong("a demand may be negative");
    }
    if (range_of(c.capacity, state_).first < 0) return wrong("the capacity may be negative");
    return {};
  }
  Status one(const cp::Circuit& c) const {
    std::set<int32_t> nodes;
    int32_t last = -1;
    for (const auto& arc : c.arcs) {
      if (arc.tail < 0 || arc.head < 0) return wrong("a node's number is negative");
      HEDDLE_RETURN_IF_ERROR(literals(std::span(&arc.literal, 1)));
      nodes.insert(arc.tail);
      nodes.insert(arc.head);
      last = std::max({last, arc.tail, arc.head});
    }
    if (static_cast<size_t>(last + 1) != nodes.size()) {
      return wrong("the nodes are not numbered 0 to " + std::to_string(last) + " without gaps");
    }
    return {};
  }

  const CpModel::State& state_;
  std::string place_;
};

struct Span {
  Wide start, end, demand;
};

// Checks one constraint whose literals of `when` are all true.
class Judge {
 public:
  Judge(const CpModel::State& state, std::span<const int64_t> values) : state_(state), values_(values) {}

  std::string operator()(const cp::Linear& c) const {
    const Wide sum = evaluate(c.expr, values_);
    if (sum >= c.lower && sum <= c.upper) return "";
    return "the sum is " + text(sum) + ", not within [" + text(c.lower) + ", " + text(c.upper) + "]";
  }
  std::string operator()(const cp::AnyOf& c) const {
    return count(c.literals) > 0 ? "" : "no literal is true";
  }
  std::string operator()(const cp::AllOf& c) const {
    return count(c.literals) == c.literals.size() ? "" : "a literal is false";
  }
  std::string operator()(const cp::ExactlyOne& c) const { return number(c.literals, 1); }
  std::string operator()(const cp::AtMostOne& c) const {
    return count(c.literals) <= 1 ? "" : number(c.literals, 1);
  }
  std::string operator()(const cp::Maximum& c) const {
    Wide most = evaluate(c.exprs[0], values_);
    for (const CpExpr& expr : c.exprs) most = std::max(most, evaluate(expr, values_));
    const Wide target = evaluate(c.target, values_);
    return target == most ? "" : "the maximum is " + text(most) + ", not " + text(target);
  }
  std::string operator()(const cp::Interval& c) const {
    const Wide start = evaluate(c.start, values_), size = evaluate(c.size, values_),
               end = evaluate(c.end, values_);
    return start + size == end ? ""
                               : "the interval starts at " + text(start) + ", lasts " + text(size) +
                                     " and ends at " + text(end);
  }
  std::string operator()(const cp::NoOverlap& c) const {
    std::vector<Span> spans = present(c.intervals, nullptr);
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.start != b.start ? a.start < b.start : a.end < b.end;
    });
    for (size_t i = 1; i < spans.size(); ++i) {
      if (spans[i - 1].end <= spans[i].start) continue;
      return "an interval ends at " + text(spans[i - 1].end) + " and the next starts at " +
             text(spans[i].start);
    }
    return "";
  }
  std::string operator()(const cp::Cumulative& c) const {
    std::map<Wide, Wide> change;
    for (const Span& span : present(c.intervals, &c.demands)) {
      if (span.start == span.end) continue;
      change[span.start] += span.demand;
      change[span.end] -= span.demand;
    }
    const Wide capacity = evaluate(c.capacity, values_);
    Wide use = 0;
    for (const auto& [time, by] : change) {
      use += by;
      if (use > capacity) return "at " + text(time) + " " + text(use) + " is used of " + text(capacity);
    }
    return "";
  }
  std::string operator()(const cp::Circuit& c) const {
    std::map<int32_t, int32_t> next;
    std::set<int32_t> nodes, entered;
    for (const auto& arc : c.arcs) {
      nodes.insert(arc.tail);
      nodes.insert(arc.head);
      if (!is_true(arc.literal, values_)) continue;
      if (!next.emplace(arc.tail, arc.head).second) return "two arcs leave node " + std::to_string(arc.tail);
      if (!entered.insert(arc.head).second) return "two arcs enter node " + std::to_string(arc.head);
    }
    size_t left = 0;
    int32_t first = -1;
    for (const int32_t node : nodes) {
      const auto found = next.find(node);
      if (found == next.end()) return "no arc leaves node " + std::to_string(node);
      if (found->second == node) continue;
      ++left;
      first = node;
    }
    if (left == 0) return "";
    size_t length = 1;
    for (int32_t node = next[first]; node != first; node = next[node]) ++length;
    return length == left ? "" : "the arcs form more than one cycle";
  }

 private:
  size_t count(std::span<const CpLit> literals) const {
    return static_cast<size_t>(std::count_if(literals.begin(), literals.end(),
                                             [&](CpLit literal) { return is_true(literal, values_); }));
  }
  std::string number(std::span<const CpLit> literals, size_t wanted) const {
    const size_t n = count(literals);
    return n == wanted ? "" : std::to_string(n) + " literals are true instead of " + std::to_string(wanted);
  }
  std::vector<Span> present(std::span<const CpInterval> intervals, const std::vector<CpExpr>* demands) const {
    std::vector<Span> spans;
    for (size_t i = 0; i < intervals.size(); ++i) {
      const auto& constraint = state_.constraints[state_.intervals[static_cast<size_t>(intervals[i].index)]];
      if (!holds(constraint.when, values_)) continue;
      const auto& interval = std::get<cp::Interval>(constraint.what);
      const Wide demand = demands == nullptr ? 0 : evaluate((*demands)[i], values_);
      spans.push_back({evaluate(interval.start, values_), evaluate(interval.end, values_), demand});
    }
    return spans;
  }

  const CpModel::State& state_;
  std::span<const int64_t> values_;
};

}  // namespace

Wide evaluate(const CpExpr& expr, std::span<const int64_t> values) {
  Wide sum = expr.constant;
  for (const CpTerm& term : expr.terms) {
    sum += Wide{term.coefficient} * values[static_cast<size_t>(term.var.index)];
  }
  return sum;
}

bool is_true(CpLit literal, std::span<const int64_t> values) {
  return (values[static_cast<size_t>(literal.var().index)] == 1) != literal.negated();
}

bool holds(std::span<const CpLit> when, std::span<const int64_t> values) {
  return std::all_of(when.begin(), when.end(), [&](CpLit literal) { return is_true(literal, values); });
}

std::pair<Wide, Wide> range_of(const CpExpr& expr, const CpModel::State& state) {
  std::pair<Wide, Wide> range{expr.constant, expr.constant};
  for (const CpTerm& term : normalised(expr).terms) {
    const auto& v = state.variables[static_cast<size_t>(term.var.index)];
    const Wide a = Wide{term.coefficient} * v.lower, b = Wide{term.coefficient} * v.upper;
    range.first += std::min(a, b);
    range.second += std::max(a, b);
  }
  return range;
}

Status check_model(const CpModel& model) { return Checker(model.state()).check(); }

std::string violation(const CpModel& model, std::span<const int64_t> values) {
  if (auto status = check_model(model); !status.ok()) return status.error().to_string();
  const auto& state = model.state();
  if (values.size() != state.variables.size()) {
    return "there are " + std::to_string(values.size()) + " values for " +
           std::to_string(state.variables.size()) + " variables";
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& v = state.variables[i];
    if (values[i] >= v.lower && values[i] <= v.upper) continue;
    return "variable " + (v.name.empty() ? std::to_string(i) : quote_text(v.name)) + " is " +
           text(values[i]) + ", not within [" + text(v.lower) + ", " + text(v.upper) + "]";
  }
  const Judge judge(state, values);
  for (size_t i = 0; i < state.constraints.size(); ++i) {
    const auto& constraint = state.constraints[i];
    if (!holds(constraint.when, values)) continue;
    const std::string what = std::visit(judge, constraint.what);
    if (!what.empty()) return "constraint " + std::to_string(i) + ": " + what;
  }
  return "";
}

}  // namespace heddle
