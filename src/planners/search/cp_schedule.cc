// The model. Variables: x(v, i), op v runs on device i; start S(v) and end E(v); makespan M. Minimise M with
//   sum over i of x(v, i) = 1,      E(v) = S(v) + sum over i of t(v, i) x(v, i)
//   S(w) >= E(u) + way(i, j, b)     where x(u, i) and x(w, j), for each tensor of b bytes from u to w
//   S(v) >= earliest(v, i), M >= S(v) + remaining(v, i)     where x(v, i)
//   no overlap of the ops on each exclusive set of devices, and M >= the sum of their times
//   parameters within each limited memory (shared ones counted in parts)
// Times are whole ticks, rounded down. Give a plan's ops the earliest starts that its devices, its order and
// the rounded times allow: by induction along the order each is at most the plan's start / tick, so its
// makespan here is at most the plan's / tick, and the model's bound times the tick is a bound on every plan.
#include "cp_schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/solve/cp.h"

namespace heddle {
namespace {

constexpr double kMostModelPlacements = 6000;  // ops x devices
constexpr double kMostPairs = 400'000;         // reads x ordered device pairs
constexpr double kTicksToHorizon = 4e6;        // when times are not multiples of a decimal unit
constexpr double kMostExactTicks = 1e9;

class Model {
 public:
  Model(const FlatProblem& flat, const Relaxation& relaxation, const FlatPlan& hint)
      : flat_(flat), r_(relaxation), k_(relaxation.devices.size()), n_(flat.num_ops()), hint_(hint) {}

  void build() {
    choose_tick();
    time_hint();
    add_ops();
    add_reads();
    add_exclusion();
    add_memory();
    cp_.minimise(CpExpr(makespan_));
  }

  const CpModel& cp() const { return cp_; }
  double us(double ticks) const { return ticks * tick_us_; }

  FlatPlan decode(const std::vector<double>& values) const {
    FlatPlan plan;
    plan.device.resize(n_);
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i) {
        if (x_[v * k_ + i] && values[static_cast<size_t>(x_[v * k_ + i]->ref)] > 0.5)
          plan.device[v] = static_cast<uint32_t>(i);
      }
    }
    plan.order.resize(n_);
    std::iota(plan.order.begin(), plan.order.end(), 0U);
    std::sort(plan.order.begin(), plan.order.end(), [&](uint32_t a, uint32_t b) {
      const double sa = values[static_cast<size_t>(start_[a].index)],
                   sb = values[static_cast<size_t>(start_[b].index)];
      return sa != sb ? sa < sb : flat_.topological_position(a) < flat_.topological_position(b);
    });
    return plan;
  }

 private:
  int64_t floor_ticks(double us) const {
    return static_cast<int64_t>(std::floor(us / tick_us_ * (1 + 1e-12)));
  }
  int64_t duration(size_t v, size_t i) const { return duration_[v * k_ + i]; }
  bool possible(size_t v, size_t i) const { return r_.t(v, i) < kImpossible; }

  // The hint's makespan in exact times, to see how far the horizon is.
  double hint_us() const {
    std::vector<double> end(n_, 0), free(k_, 0);
    double last = 0;
    for (const uint32_t v : hint_.order) {
      const size_t i = hint_.device[v];
      double start = r_.earliest_finish[v * k_ + i] - r_.t(v, i);
      for (const uint32_t t : flat_.inputs(v)) {
        const uint32_t u = flat_.producer(t);
        start = std::max(start, end[u] + r_.way_us(hint_.device[u], i, flat_.bytes(t)));
      }
      for (const auto& set : r_.exclusive) {
        if (std::find(set.begin(), set.end(), i) == set.end()) continue;
        for (const uint32_t j : set) start = std::max(start, free[j]);
      }
      free[i] = end[v] = start + r_.t(v, i);
      last = std::max(last, end[v]);
    }
    return last;
  }

  // A decimal unit of which every time is a multiple makes the model exact.
  void choose_tick() {
    const double horizon = std::max(hint_us(), 1e-9);
    for (double unit = 1; unit > 1e-7; unit /= 10) {
      if (horizon / unit > kMostExactTicks) break;
      if (is_unit(unit)) {
        tick_us_ = unit;
        return;
      }
    }
    tick_us_ = horizon / kTicksToHorizon;
  }
  bool is_unit(double unit) const {
    const auto whole = [&](double us) {
      const double q = us / unit;
      return !std::isfinite(us) || std::fabs(q - std::round(q)) <= 1e-9 * std::max(1.0, q);
    };
    if (!std::all_of(r_.time.begin(), r_.time.end(), whole)) return false;
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      for (size_t i = 0; i < k_; ++i) {
        for (size_t j = 0; j < k_; ++j) {
          if (!whole(r_.way_us(i, j, flat_.bytes(t)))) return false;
        }
      }
    }
    return true;
  }

  void time_hint() {
    duration_.assign(n_ * k_, 0);
    for (size_t v = 0; v < n_; ++v) {
      for (size_t i = 0; i < k_; ++i) duration_[v * k_ + i] = possible(v, i) ? floor_ticks(r_.t(v, i)) : 0;
    }
    hint_start_.assign(n_, 0);
    std::vector<int64_t> end(n_, 0), free(k_, 0);
    for (const uint32_t v : hint_.order) {
      const size_t i = hint_.device[v];
      int64_t start = head(v, i);
      for (const uint32_t t : flat_.inputs(v)) {
        const uint32_t u = flat_.producer(t);
        start = std::max(start, end[u] + delay(hint_.device[u], i, t));
      }
      for (const auto& set : r_.exclusive) {
        if (std::find(set.begin(), set.end(), i) == set.end()) continue;
        for (const uint32_t j : set) start = std::max(start, free[j]);
      }
      hint_start_[v] = start;
      free[i] = end[v] = start + duration(v, i);
    }
    horizon_ = 0;
    for (size_t v = 0; v < n_; ++v) horizon_ = std::max(horizon_, hint_start_[v] + tail(v, hint_.device[v]));
  }
  int64_t delay(size_t i, size_t j, uint32_t t) const { return floor_ticks(r_.way_us(i, j, flat_.bytes(t))); }
  int64_t head(size_t v, size_t i) const { return floor_ticks(r_.earliest_finish[v * k_ + i] - r_.t(v, i)); }
  int64_t tail(size_t v, size_t i) const {
    return std::max(duration(v, i), floor_ticks(r_.remaining[v * k_ + i]));
  }

  void add_ops() {
    makespan_ = cp_.add_integer(0, horizon_, "makespan");
    cp_.hint(makespan_, horizon_);
    x_.resize(n_ * k_);
    for (size_t v = 0; v < n_; ++v) {
      start_.push_back(cp_.add_integer(0, horizon_));
      end_.push_back(cp_.add_integer(0, horizon_));
      std::vector<CpLit> one;
      CpExpr run(start_[v]);
      for (size_t i = 0; i < k_; ++i) {
        // Nothing better than the hint has v there.
        if (!possible(v, i) || (head(v, i) + tail(v, i) > horizon_ && hint_.device[v] != i)) continue;
        const CpLit x = cp_.add_literal();
        x_[v * k_ + i] = x;
        one.push_back(x);
        run.add(x, duration(v, i));
        cp_.hint(x.var(), hint_.device[v] == i ? 1 : 0);
        cp_.linear(head(v, i), CpExpr(start_[v]), horizon_, std::span(&x, 1));
        cp_.linear(tail(v, i), CpExpr(makespan_).add(start_[v], -1), horizon_, std::span(&x, 1));
      }
      cp_.exactly_one(one);
      cp_.linear(0, run.add(end_[v], -1), 0);
      cp_.linear(0, CpExpr(makespan_).add(end_[v], -1), horizon_);
      cp_.hint(start_[v], hint_start_[v]);
      cp_.hint(end_[v], hint_start_[v] + duration(v, hint_.device[v]));
    }
  }

  void add_reads() {
    for (size_t w = 0; w < n_; ++w) {
      for (const uint32_t t : flat_.inputs(w)) {
        const uint32_t u = flat_.producer(t);
        cp_.linear(0, CpExpr(start_[w]).add(end_[u], -1), horizon_);
        for (size_t i = 0; i < k_; ++i) {
          for (size_t j = 0; j < k_; ++j) {
            if (i == j || !x_[u * k_ + i] || !x_[w * k_ + j]) continue;
            const CpLit both[] = {*x_[u * k_ + i], *x_[w * k_ + j]};
            if (!std::isfinite(r_.way_us(i, j, flat_.bytes(t)))) {
              const CpLit not_both[] = {!both[0], !both[1]};
              cp_.any_of(not_both);
            } else if (const int64_t ticks = delay(i, j, t); ticks > 0) {
              cp_.linear(ticks, CpExpr(start_[w]).add(end_[u], -1), horizon_, both);
            }
          }
        }
      }
    }
  }

  void add_exclusion() {
    for (const auto& set : r_.exclusive) {
      std::vector<CpInterval> intervals;
      CpExpr work(makespan_);
      for (size_t v = 0; v < n_; ++v) {
        for (const uint32_t i : set) {
          if (!x_[v * k_ + i] || duration(v, i) == 0) continue;
          const CpLit x = *x_[v * k_ + i];
          intervals.push_back(cp_.interval(CpExpr(start_[v]), CpExpr(duration(v, i)),
                                           CpExpr(start_[v]).add(duration(v, i)), std::span(&x, 1)));
          work.add(x, -duration(v, i));
        }
      }
      if (intervals.size() < 2) continue;
      cp_.no_overlap(intervals);
      cp_.linear(0, std::move(work), horizon_);
    }
  }

  void add_memory() {
    if (!flat_.has_limits()) return;
    // Parameters that are dropped, or read in host memory, need not be in a device's memory together.
    if (flat_.is_cold() && (flat_.problem().has_host_access() || flat_.problem().execution.parameter_drops))
      return;
    std::vector<int64_t> users(flat_.num_params(), 0);
    for (size_t v = 0; v < n_; ++v) {
      for (const uint32_t p : flat_.params(v)) ++users[p];
    }
    for (size_t pool = 0; pool < flat_.num_pools(); ++pool) {
      const int64_t limit = flat_.pool_limit(pool);
      if (limit <= 0) continue;
      CpExpr bytes;
      for (size_t v = 0; v < n_; ++v) {
        int64_t own = 0;
        for (const uint32_t p : flat_.params(v)) own = plus_bytes(own, flat_.param_bytes(p) / users[p]);
        if (own == 0) continue;
        for (size_t i = 0; i < k_; ++i) {
          if (x_[v * k_ + i] && flat_.pool(i) == pool) bytes.add(*x_[v * k_ + i], own);
        }
      }
      cp_.linear(0, std::move(bytes), limit);
    }
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const size_t k_, n_;
  const FlatPlan& hint_;
  double tick_us_ = 1;
  int64_t horizon_ = 0;
  std::vector<int64_t> duration_, hint_start_;
  CpModel cp_;
  CpVar makespan_;
  std::vector<CpVar> start_, end_;
  std::vector<std::optional<CpLit>> x_;
};

}  // namespace

bool cp_schedule_fits(const FlatProblem& flat) {
  const auto k = static_cast<double>(flat.num_devices());
  return static_cast<double>(flat.num_ops()) * k <= kMostModelPlacements &&
         static_cast<double>(flat.num_reads()) * k * (k - 1) <= kMostPairs;
}

Result<CpSchedule> solve_cp_schedule(const FlatProblem& flat, const Relaxation& relaxation,
                                     const FlatPlan& hint, const CpScheduleOptions& options) {
  Model model(flat, relaxation, hint);
  model.build();
  SolveOptions solve_options;
  solve_options.deadline = options.deadline;
  solve_options.threads = options.threads;
  solve_options.seed = options.seed;
  solve_options.linear_relaxation = options.linear_relaxation;
  if (options.on_progress) {
    solve_options.on_progress = [&](const SolveProgress& p) {
      options.on_progress(model.us(std::max(p.bound, 0.0)), model.us(p.incumbent));
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(model.cp(), solve_options));
  CpSchedule result;
  result.plan = hint;
  if (solution.status == SolveStatus::kInfeasible) {
    return Error(Code::kInternal, "the scheduling model has no solution although a plan satisfies it");
  }
  // The same rounding that the combinatorial bounds get.
  const double safe = 1 - 1e-12 - 4e-16 * static_cast<double>(flat.num_ops());
  if (std::isfinite(solution.bound)) result.bound_us = std::max(0.0, model.us(solution.bound) * safe);
  if (solution.has_values()) {
    result.plan = model.decode(solution.values);
    result.model_us = model.us(solution.objective);
  }
  result.complete = solution.status == SolveStatus::kOptimal;
  return result;
}

}  // namespace heddle
