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

#include "heddle/base/decimals.h"

namespace heddle {
namespace {

constexpr double kMostModelPlacements = 6000;  // ops x devices
constexpr double kMostPairs = 400'000;         // reads x ordered device pairs
constexpr double kTicksToHorizon = 4e6;        // when times are not multiples of a decimal unit
constexpr double kMostExactTicks = 1e9;
constexpr int kMostTickDecimals = 6;

class RelaxedSchedule {
 public:
  RelaxedSchedule(const FlatProblem& flat, const Relaxation& relaxation, const FlatPlan& hint)
      : flat_(flat),
        r_(relaxation),
        k_(relaxation.devices.size()),
        n_(flat.num_ops()),
        hint_(hint),
        tick_us_(choose_tick()),
        hint_start_(time_hint<int64_t>([&](size_t v, size_t i) { return head(v, i); },
                                       [&](size_t v, size_t i) { return duration(v, i); },
                                       [&](size_t i, size_t j, uint32_t t) { return delay(i, j, t); })),
        horizon_(hint_end()),
        m_(n_, k_, horizon_) {
    makespan_ = m_.cp.add_integer(0, horizon_, "makespan");
    m_.cp.hint(makespan_, horizon_);
    for (size_t v = 0; v < n_; ++v) add_op(v);
    for (size_t w = 0; w < n_; ++w) {
      for (const uint32_t t : flat_.inputs(w)) add_read(w, t);
    }
    for (const auto& set : r_.exclusive)
      m_.exclude(
          set, start_, [&](size_t v, size_t i) { return duration(v, i); }, makespan_);
    add_memory();
    m_.cp.minimise(CpExpr(makespan_));
  }

  const CpModel& cp() const { return m_.cp; }
  double tick_us() const { return tick_us_; }

  FlatPlan decode(const std::vector<double>& values) const {
    FlatPlan plan;
    std::vector<uint32_t> position;
    for (size_t v = 0; v < n_; ++v) {
      plan.device.push_back(m_.device(v, values));
      position.push_back(flat_.topological_position(v));
    }
    plan.order = ScheduleModel::order({&start_}, values, position);
    return plan;
  }

 private:
  int64_t floor_ticks(double us) const {
    return static_cast<int64_t>(std::floor(us / tick_us_ * (1 + 1e-12)));
  }
  // No plan has v where what it reads, or what reads it, cannot come or go.
  bool possible(size_t v, size_t i) const {
    return r_.t(v, i) < kImpossible && r_.earliest_finish[v * k_ + i] < kImpossible &&
           r_.remaining[v * k_ + i] < kImpossible;
  }
  int64_t duration(size_t v, size_t i) const { return possible(v, i) ? floor_ticks(r_.t(v, i)) : 0; }
  int64_t delay(size_t i, size_t j, uint32_t t) const {
    const double us = r_.way_us(i, j, flat_.bytes(t));
    return std::isfinite(us) ? floor_ticks(us) : ScheduleModel::kNoWay;
  }
  int64_t head(size_t v, size_t i) const { return floor_ticks(r_.earliest_finish[v * k_ + i] - r_.t(v, i)); }
  int64_t tail(size_t v, size_t i) const {
    return std::max(duration(v, i), floor_ticks(r_.remaining[v * k_ + i]));
  }

  // The hint's earliest starts.
  template <class T, class Head, class Duration, class Delay>
  std::vector<T> time_hint(const Head& head, const Duration& duration, const Delay& delay) const {
    std::vector<T> start(n_, 0), free(k_, 0);
    for (const uint32_t v : hint_.order) {
      const size_t i = hint_.device[v];
      start[v] = head(v, i);
      for (const uint32_t t : flat_.inputs(v)) {
        const uint32_t u = flat_.producer(t), j = hint_.device[u];
        start[v] = std::max(start[v], start[u] + duration(u, j) + delay(j, i, t));
      }
      for (const auto& set : r_.exclusive) {
        if (std::find(set.begin(), set.end(), i) == set.end()) continue;
        for (const uint32_t j : set) start[v] = std::max(start[v], free[j]);
      }
      free[i] = start[v] + duration(v, i);
    }
    return start;
  }
  int64_t hint_end() const {
    int64_t end = 0;
    for (size_t v = 0; v < n_; ++v) end = std::max(end, hint_start_[v] + tail(v, hint_.device[v]));
    return end;
  }

  // A decimal unit of which every time is a multiple makes the model exact.
  double choose_tick() const {
    const auto start =
        time_hint<double>([&](size_t v, size_t i) { return r_.earliest_finish[v * k_ + i] - r_.t(v, i); },
                          [&](size_t v, size_t i) { return r_.t(v, i); },
                          [&](size_t i, size_t j, uint32_t t) { return r_.way_us(i, j, flat_.bytes(t)); });
    double horizon = 1e-9;
    for (size_t v = 0; v < n_; ++v) horizon = std::max(horizon, start[v] + r_.t(v, hint_.device[v]));
    std::vector<double> times;
    const auto add = [&](double us) {
      if (std::isfinite(us)) times.push_back(us);
    };
    for (const double us : r_.time) add(us);
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      for (size_t i = 0; i < k_; ++i) {
        for (size_t j = 0; j < k_; ++j) add(r_.way_us(i, j, flat_.bytes(t)));
      }
    }
    const auto per_us = decimal_scale(times, kMostTickDecimals);
    return per_us && horizon * *per_us <= kMostExactTicks ? 1 / *per_us : horizon / kTicksToHorizon;
  }

  void add_op(size_t v) {
    const size_t hinted = hint_.device[v];
    start_.push_back(m_.cp.add_integer(0, horizon_));
    end_.push_back(m_.cp.add_integer(0, horizon_));
    m_.cp.hint(start_[v], hint_start_[v]);
    m_.cp.hint(end_[v], hint_start_[v] + duration(v, hinted));
    for (size_t i = 0; i < k_; ++i) {
      // Nothing better than the hint has v there.
      if (!possible(v, i) || (head(v, i) + tail(v, i) > horizon_ && hinted != i)) continue;
      const CpLit here[] = {m_.may_run(v, i, hinted == i)};
      m_.after(CpExpr(start_[v]), CpExpr(0), head(v, i), here);
      m_.after(CpExpr(makespan_), CpExpr(start_[v]), tail(v, i), here);
    }
    m_.choose_device(v);
    m_.cp.linear(0, m_.end_of(v, start_[v], [&](size_t i) { return duration(v, i); }).add(end_[v], -1), 0);
    m_.after(CpExpr(makespan_), CpExpr(end_[v]), 0);
  }

  void add_read(size_t w, uint32_t t) {
    const uint32_t u = flat_.producer(t);
    m_.after(CpExpr(start_[w]), CpExpr(end_[u]), 0);
    m_.transfer(u, CpExpr(end_[u]), w, start_[w], [&](size_t i, size_t j) { return delay(i, j, t); });
  }

  void add_memory() {
    if (!flat_.has_limits()) return;
    // Parameters that are dropped, or read in host memory, need not be in a device's memory together.
    if (flat_.is_cold() && (flat_.problem().has_host_access() || flat_.problem().execution.parameter_drops))
      return;
    std::vector<int64_t> users(flat_.num_params(), 0), own(n_, 0);
    for (size_t v = 0; v < n_; ++v) {
      for (const uint32_t p : flat_.params(v)) ++users[p];
    }
    for (size_t v = 0; v < n_; ++v) {
      for (const uint32_t p : flat_.params(v)) own[v] = plus_bytes(own[v], flat_.param_bytes(p) / users[p]);
    }
    for (size_t pool = 0; pool < flat_.num_pools(); ++pool) {
      if (flat_.pool_limit(pool) <= 0) continue;
      m_.limit_memory([&](size_t v, size_t i) { return flat_.pool(i) == pool ? own[v] : 0; },
                      flat_.pool_limit(pool));
    }
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const size_t k_, n_;
  const FlatPlan& hint_;
  const double tick_us_;
  const std::vector<int64_t> hint_start_;
  const int64_t horizon_;
  ScheduleModel m_;
  CpVar makespan_;
  std::vector<CpVar> start_, end_;
};

}  // namespace

bool cp_schedule_fits(const FlatProblem& flat) {
  const auto k = static_cast<double>(flat.num_devices());
  return static_cast<double>(flat.num_ops()) * k <= kMostModelPlacements &&
         static_cast<double>(flat.num_reads()) * k * (k - 1) <= kMostPairs;
}

Result<CpSchedule> solve_cp_schedule(const FlatProblem& flat, const Relaxation& relaxation,
                                     const FlatPlan& hint, const CpScheduleOptions& options) {
  const RelaxedSchedule model(flat, relaxation, hint);
  HEDDLE_ASSIGN_OR_RETURN(const auto answer,
                          solve_relaxed(model.cp(), model.tick_us(), flat.num_ops(), options));
  return CpSchedule{answer.values.empty() ? hint : model.decode(answer.values), answer.bound_us,
                    answer.complete};
}

}  // namespace heddle
