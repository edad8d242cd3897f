#include "schedule_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle {

ScheduleModel::ScheduleModel(size_t num_ops, size_t num_devices, int64_t reach)
    : n_(num_ops),
      k_(num_devices),
      reach_(reach),
      always_(cp.true_literal()),
      x_(num_ops * num_devices, !always_) {}

CpLit ScheduleModel::may_run(size_t op, size_t device, std::optional<bool> hint) {
  const CpLit x = cp.add_literal();
  if (hint) cp.hint(x.var(), *hint ? 1 : 0);
  runs_if(op, device, x);
  return x;
}

void ScheduleModel::choose_device(size_t op) {
  std::vector<CpLit> one;
  for (size_t i = 0; i < k_; ++i) {
    if (possible(op, i)) one.push_back(on(op, i));
  }
  cp.exactly_one(one);
}

std::vector<CpLit> ScheduleModel::all(std::initializer_list<CpLit> literals) const {
  std::vector<CpLit> open;
  for (const CpLit literal : literals) {
    if (literal.ref != always_.ref) open.push_back(literal);
  }
  return open;
}

void ScheduleModel::limit_params(const FlatProblem& flat, const ParamRoom& room,
                                 std::span<const uint32_t> ops, std::span<const uint32_t> device) {
  constexpr int kBytesShift = 10;
  for (size_t pool = 0; flat.has_limits() && pool < flat.num_pools(); ++pool) {
    if (flat.pool_limit(pool) <= 0) continue;
    const auto bytes = [&](size_t v, size_t i) {
      return flat.pool(i) == pool ? room.new_bytes(ops[v], i) >> kBytesShift : 0;
    };
    int64_t now = 0;
    for (size_t v = 0; v < ops.size(); ++v) now = plus_bytes(now, bytes(v, device[ops[v]]));
    limit_memory(bytes, std::max(now, room.room(pool) >> kBytesShift));
  }
}

void ScheduleModel::forbid(std::span<const CpLit> literals) {
  std::vector<CpLit> no;
  for (const CpLit literal : literals) no.push_back(!literal);
  cp.any_of(no);
}

void ScheduleModel::implies(std::span<const CpLit> literals, CpLit then) {
  std::vector<CpLit> one{then};
  for (const CpLit literal : literals) one.push_back(!literal);
  cp.any_of(one);
}

void ScheduleModel::hint(CpLit literal, bool value) {
  if (literal.var() != always_.var()) cp.hint(literal.var(), value != literal.negated() ? 1 : 0);
}

void ScheduleModel::both(CpLit both, CpLit a, CpLit b) {
  const CpLit parts[] = {a, b}, when[] = {both}, either[] = {both, !a, !b};
  cp.all_of(parts, when);
  cp.any_of(either);
}

void ScheduleModel::after(CpExpr to, const CpExpr& from, int64_t gap, std::span<const CpLit> when) {
  // As a row its limits would cross, which CP-SAT refuses.
  if (gap > reach_) {
    forbid(when);
    return;
  }
  for (const CpTerm& term : from.terms) to.add(term.var, -term.coefficient);
  to.add(-from.constant);
  cp.linear(gap, std::move(to), reach_, when);
}

void ScheduleModel::hold(size_t resource, CpVar start, int64_t length, std::span<const CpLit> when) {
  hold(resource, cp.interval(CpExpr(start), CpExpr(length), CpExpr(start).add(length), when));
}

void ScheduleModel::add_resources() {
  for (const auto& [resource, intervals] : held_) {
    if (intervals.size() > 1) cp.no_overlap(intervals);
  }
  held_.clear();
}

int64_t ScheduleModel::value(CpVar var, std::span<const double> values) {
  return std::llround(values[static_cast<size_t>(var.index)]);
}

bool ScheduleModel::is_true(CpLit literal, std::span<const double> values) {
  return (value(literal.var(), values) != 0) != literal.negated();
}

uint32_t ScheduleModel::device(size_t op, std::span<const double> values) const {
  for (uint32_t i = 0; i < k_; ++i) {
    if (is_true(on(op, i), values)) return i;
  }
  return 0;
}

std::vector<uint32_t> ScheduleModel::order(std::initializer_list<const std::vector<CpVar>*> times,
                                           std::span<const double> values,
                                           std::span<const uint32_t> position) {
  std::vector<uint32_t> order(position.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    for (const auto* of : times) {
      const int64_t at_a = value((*of)[a], values), at_b = value((*of)[b], values);
      if (at_a != at_b) return at_a < at_b;
    }
    return position[a] < position[b];
  });
  return order;
}

Result<CpScheduleAnswer> solve_relaxed(const CpModel& model, double tick_us, size_t num_ops,
                                       const CpScheduleOptions& options) {
  SolveOptions solve_options{.deadline = options.deadline,
                             .threads = options.threads,
                             .seed = options.seed,
                             .linear_relaxation = options.linear_relaxation};
  if (options.on_progress) {
    solve_options.on_progress = [&](const SolveProgress& p) {
      options.on_progress(std::max(p.bound, 0.0) * tick_us);
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(Solution solution, solve(model, solve_options));
  if (solution.status == SolveStatus::kInfeasible)
    return internal_error("the scheduling model has no solution although a plan satisfies it");
  CpScheduleAnswer answer;
  // The same rounding that the combinatorial bounds get.
  const double safe = 1 - 1e-12 - 4e-16 * static_cast<double>(num_ops);
  if (std::isfinite(solution.bound)) answer.bound_us = std::max(0.0, solution.bound * tick_us * safe);
  answer.complete = solution.status == SolveStatus::kOptimal;
  if (solution.has_values()) answer.values = std::move(solution.values);
  return answer;
}

}  // namespace heddle
