#include "lns_window.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "heddle/solve/cp_work.h"
#include "lns_surroundings.h"

namespace heddle {
namespace {

// Ticks of the window's time. More would be more exact than need be, and make CP-SAT slow: where constraints
// form a cycle it tightens domains by one duration at a time. So nothing in the window starts later than some
// lengths of it either, and transfers and loads of a few ticks wait for no other.
constexpr double kTicks = 1 << 13;
constexpr int64_t kLatest = 3 << 13, kLeastWait = 16;
constexpr double kMostTicks = 1LL << 40;
// With more transfers than this that may wait for each other they are taken to pass each other.
constexpr size_t kMostTransfers = 3000;
constexpr size_t kNone = SIZE_MAX;

class Window {
 public:
  Window(const FlatProblem& flat, const TimedPlan& timed, const Neighbourhood& area)
      : flat_(flat), plan_(*timed.plan), timed_(timed), k_(flat.num_devices()), first_(area.first) {
    ops_.assign(plan_.order.begin() + static_cast<long>(area.first),
                plan_.order.begin() + static_cast<long>(area.last));
    position_.resize(flat.num_ops());
    for (size_t i = 0; i < plan_.order.size(); ++i) position_[plan_.order[i]] = i;
    origin_us_ = timed.makespan_us;
    for (const uint32_t v : ops_) origin_us_ = std::min(origin_us_, (*timed.start)[v]);
    double end_us = origin_us_;
    for (const uint32_t v : ops_) end_us = std::max(end_us, (*timed.finish)[v]);
    tick_us_ = std::max(end_us - origin_us_, 1e-9 * timed.makespan_us + 1e-12) / kTicks;
    horizon_ = ticks(timed.makespan_us) + 4 * static_cast<int64_t>(ops_.size()) + 64;
    around_ = survey(flat, timed, area.first, area.last);
    choose_devices(area);
  }

  // Nothing in the window can shorten the plan.
  bool hopeless() const { return around_.least_us >= timed_.makespan_us * (1 - 1e-12); }

  void build() {
    makespan_ = cp_.add_integer(ticks(around_.least_us), horizon());
    for (size_t p = 0; p < ops_.size(); ++p) add_op(p);
    choose_contention();
    for (size_t p = 0; p < ops_.size(); ++p) {
      for (const uint32_t t : flat_.inputs(ops_[p])) {
        if (local(flat_.producer(t)) == kNone) add_tensor(t);
      }
      for (const uint32_t t : flat_.outputs(ops_[p])) add_tensor(t);
    }
    if (flat_.is_cold()) add_loads();
    add_exclusion();
    add_memory();
    cp_.minimise(CpExpr(makespan_));
  }
  const CpModel& cp() const { return cp_; }

  FlatPlan decode(const std::vector<double>& values) const {
    FlatPlan plan = plan_;
    for (size_t p = 0; p < ops_.size(); ++p) {
      for (uint32_t i = 0; i < k_; ++i) {
        if (x_[p * k_ + i].kind == Placement::kOpen && is_true(x_[p * k_ + i].literal, values))
          plan.device[ops_[p]] = i;
      }
    }
    std::vector<uint32_t> order = ops_;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const double sa = values[static_cast<size_t>(start_[local(a)].index)],
                   sb = values[static_cast<size_t>(start_[local(b)].index)];
      return sa != sb ? sa < sb : flat_.topological_position(a) < flat_.topological_position(b);
    });
    std::copy(order.begin(), order.end(), plan.order.begin() + static_cast<long>(first_));
    return plan;
  }

 private:
  struct Placement {
    enum Kind : uint8_t { kNever, kAlways, kOpen } kind = kNever;
    CpLit literal;
  };

  static bool is_true(CpLit l, const std::vector<double>& values) {
    return (values[static_cast<size_t>(l.var().index)] > 0.5) != l.negated();
  }
  size_t local(uint32_t op) const {
    const size_t at = position_[op];
    return at >= first_ && at < first_ + ops_.size() ? at - first_ : kNone;
  }
  bool is_before(uint32_t op) const { return position_[op] < first_; }
  int64_t ticks(double us) const {
    return std::llround(std::clamp((us - origin_us_) / tick_us_, -kMostTicks, kMostTicks));
  }
  int64_t length(double us) const { return std::llround(std::clamp(us / tick_us_, 0.0, kMostTicks)); }
  // Rounding may lengthen a chain by half a tick per link.
  int64_t horizon() const { return horizon_; }
  int64_t latest() const { return std::min(horizon_, kLatest); }
  int64_t run(size_t p, size_t i) const { return length(flat_.us(ops_[p], i)); }
  const Placement& at(size_t p, size_t i) const { return x_[p * k_ + i]; }
  bool possible(size_t p, size_t i) const { return at(p, i).kind != Placement::kNever; }

  // The literals of these placements that are still open.
  static std::vector<CpLit> all(std::initializer_list<Placement> placements) {
    std::vector<CpLit> literals;
    for (const Placement& x : placements) {
      if (x.kind == Placement::kOpen) literals.push_back(x.literal);
    }
    return literals;
  }
  // to - from >= gap, where all of `when` hold.
  void after(CpExpr to, const CpExpr& from, int64_t gap, const std::vector<CpLit>& when) {
    for (const CpTerm& t : from.terms) to.add(t.var, -t.coefficient);
    to.add(-from.constant);
    cp_.linear(gap, std::move(to), int64_t{1} << 50, when);
  }
  // The end of p when it runs on i.
  CpExpr end_on(size_t p, size_t i) const { return CpExpr(start_[p]).add(run(p, i)); }

  // The end of p wherever it runs, and later by `more` of that device: what propagates before devices are
  // known.
  template <class More>
  CpExpr end_of(size_t p, const More& more) const {
    CpExpr end(start_[p]);
    for (size_t i = 0; i < k_; ++i) {
      if (at(p, i).kind == Placement::kAlways) end.add(run(p, i) + more(i));
      if (at(p, i).kind == Placement::kOpen) end.add(at(p, i).literal, run(p, i) + more(i));
    }
    return end;
  }

  void choose_devices(const Neighbourhood& area) {
    x_.resize(ops_.size() * k_);
    for (size_t p = 0; p < ops_.size(); ++p) x_[p * k_ + plan_.device[ops_[p]]].kind = Placement::kAlways;
    is_free_.assign(ops_.size(), 0);
    std::map<uint32_t, std::vector<size_t>> units;
    for (size_t f = 0; f < area.free.size(); ++f) {
      const size_t p = local(area.free[f]);
      is_free_[p] = 1;
      units[area.unit.empty() ? static_cast<uint32_t>(f) : area.unit[f]].push_back(p);
    }
    for (const auto& [number, members] : units) {
      std::vector<uint32_t> devices;
      const uint32_t now = plan_.device[ops_[members[0]]];
      for (uint32_t i = 0; i < k_; ++i) {
        const bool wanted = i == now || area.devices.empty() ||
                            std::find(area.devices.begin(), area.devices.end(), i) != area.devices.end();
        const bool able = std::all_of(members.begin(), members.end(),
                                      [&](size_t p) { return flat_.us(ops_[p], i) < kImpossible; });
        if (wanted && able) devices.push_back(i);
      }
      if (devices.size() < 2) continue;
      std::vector<CpLit> one;
      for (const uint32_t i : devices) {
        one.push_back(cp_.add_literal());
        cp_.hint(one.back().var(), i == now ? 1 : 0);
        for (const size_t p : members) x_[p * k_ + i] = {Placement::kOpen, one.back()};
      }
      cp_.exactly_one(one);
    }
  }

  void add_op(size_t p) {
    const uint32_t v = ops_[p];
    start_.push_back(cp_.add_integer(0, latest()));
    cp_.hint(start_[p], std::clamp<int64_t>(ticks((*timed_.start)[v]), 0, latest()));
    std::vector<int64_t> tails;
    for (size_t i = 0; i < k_; ++i) {
      if (!possible(p, i)) {
        tails.push_back(0);
        continue;
      }
      const auto here = all({at(p, i)});
      double free = around_.free_us[i], tail = around_.tail_us[i];
      for (const uint32_t o : flat_.overlaps(i)) {
        free = std::max(free, around_.free_us[o]);
        tail = std::max(tail, around_.tail_us[o]);
      }
      tails.push_back(length(tail));
      if (ticks(free) > 0) after(CpExpr(start_[p]), CpExpr(0), ticks(free), here);
    }
    after(CpExpr(makespan_), end_of(p, [&](size_t i) { return tails[i]; }), 0, {});
  }

  void choose_contention() {
    size_t transfers = 0;
    for (size_t p = 0; p < ops_.size(); ++p) {
      size_t places = 0;
      for (size_t i = 0; i < k_; ++i) places += possible(p, i) ? 1 : 0;
      for (const uint32_t t : flat_.outputs(ops_[p]))
        transfers += flat_.readers(t).empty() ? 0 : places * (k_ - 1);
    }
    // Together with cores that devices share, propagation takes longer than it gains.
    contention_ = flat_.has_contention() && flat_.core_groups().empty() && transfers <= kMostTransfers;
  }

  // A tensor that the window makes or reads, to every device where it may be read.
  void add_tensor(uint32_t t) {
    const uint32_t u = flat_.producer(t);
    const size_t pu = local(u);
    if (pu == kNone && !seen_.insert(t).second) return;
    std::set<size_t> joined;
    for (uint32_t j = 0; j < k_; ++j) {
      bool is_there = false;  // by a transfer for an op before
      double rest = -1;       // of a later reader there
      std::vector<size_t> inside;
      for (const uint32_t w : flat_.readers(t)) {
        const size_t pw = local(w);
        if (pw != kNone) {
          if (possible(pw, j)) inside.push_back(pw);
        } else if (plan_.device[w] == j) {
          if (is_before(w))
            is_there = true;
          else
            rest = std::max(rest, around_.rest_us[w]);
        }
      }
      if (inside.empty() && (rest < 0 || pu == kNone)) continue;
      if (pu != kNone) {
        for (const size_t w : inside) {
          if (joined.insert(w).second) after(CpExpr(start_[w]), end_of(pu, [](size_t) { return 0; }), 0, {});
        }
        if (rest >= 0) after(CpExpr(makespan_), end_of(pu, [](size_t) { return 0; }), length(rest), {});
      }
      std::optional<CpVar> moves;
      for (uint32_t i = 0; i < k_; ++i) {
        Placement source{Placement::kAlways, {}};
        if (pu != kNone) source = at(pu, i);
        if (source.kind == Placement::kNever || (pu == kNone && plan_.device[u] != i)) continue;
        add_way(t, i, j, source, inside, rest, is_there, moves);
      }
    }
  }

  void add_way(uint32_t t, uint32_t i, uint32_t j, Placement source, const std::vector<size_t>& inside,
               double rest, bool is_there, std::optional<CpVar>& moves) {
    const uint32_t u = flat_.producer(t);
    const size_t pu = local(u);
    const auto& way = flat_.way(i, j);
    const CpExpr ready = pu == kNone ? CpExpr(ticks((*timed_.finish)[u])) : end_on(pu, i);
    const auto forbid = [&](const std::vector<CpLit>& both) {
      std::vector<CpLit> no;
      for (const CpLit l : both) no.push_back(!l);
      cp_.any_of(no);
    };
    if (way.passage == Passage::kNone && i != j) {
      for (const size_t w : inside) forbid(all({source, at(w, j)}));
      if (rest >= 0) forbid(all({source}));
      return;
    }
    const int64_t delay = i == j ? 0 : length(flat_.transfer_us(i, j, flat_.bytes(t)));
    const bool waits = contention_ && !is_there && i != j && way.passage == Passage::kRoute &&
                       way.first != way.last && delay >= kLeastWait;
    // Without a delay the rows that hold wherever the producer runs are enough.
    if (delay > 0 || pu == kNone) {
      for (const size_t w : inside) after(CpExpr(start_[w]), ready, delay, all({source, at(w, j)}));
      if (rest >= 0 && pu != kNone) after(CpExpr(makespan_), ready, delay + length(rest), all({source}));
    }
    if (!waits) return;
    if (!moves) {
      moves = cp_.add_integer(0, latest());
      cp_.hint(*moves, std::clamp<int64_t>(ticks((*timed_.finish)[u]), 0, latest()));
    }
    std::vector<CpLit> when = all({source});
    if (rest < 0) {
      // Only when something in the window reads it there.
      const CpLit needed = cp_.add_literal();
      bool now = plan_.device[u] == i;
      bool any = false;
      for (const size_t w : inside) {
        any = any || plan_.device[ops_[w]] == j;
        std::vector<CpLit> one{needed};
        for (const CpLit l : all({source, at(w, j)})) one.push_back(!l);
        cp_.any_of(one);
      }
      cp_.hint(needed.var(), now && any ? 1 : 0);
      when = {needed};
    }
    after(CpExpr(*moves), ready, 0, when);
    const CpInterval interval = cp_.interval(CpExpr(*moves), CpExpr(delay), CpExpr(*moves).add(delay), when);
    for (const uint32_t r : flat_.resources(way)) on_resource_[r].push_back(interval);
    for (const size_t w : inside) after(CpExpr(start_[w]), CpExpr(*moves), delay, all({source, at(w, j)}));
    if (rest >= 0 && pu != kNone)
      after(CpExpr(makespan_), CpExpr(*moves), delay + length(rest), all({source}));
  }

  int64_t new_bytes(size_t p, size_t i) const {
    int64_t bytes = 0;
    for (const uint32_t q : flat_.params(ops_[p])) {
      if (!around_.brought[flat_.pool(i) * flat_.num_params() + q])
        bytes = plus_bytes(bytes, flat_.param_bytes(q));
    }
    return bytes;
  }

  void add_loads() {
    for (size_t p = 0; p < ops_.size(); ++p) {
      std::optional<CpVar> loads;
      for (size_t i = 0; i < k_; ++i) {
        if (!possible(p, i) || !flat_.needs_load(i)) continue;
        const auto& way = flat_.load_way(i);
        const int64_t bytes = new_bytes(p, i);
        if (bytes == 0 || way.passage == Passage::kFree) continue;
        const auto here = all({at(p, i)});
        if (way.passage == Passage::kNone) {
          std::vector<CpLit> no;
          for (const CpLit l : here) no.push_back(!l);
          cp_.any_of(no);
          continue;
        }
        if (!loads) loads = cp_.add_integer(std::max(ticks(0), -8 * kLatest), latest());
        const int64_t time = length(way.time_us(bytes));
        double from = 0;
        for (const uint32_t r : flat_.resources(way)) from = std::max(from, around_.loaded_us[r]);
        after(CpExpr(*loads), CpExpr(0), std::max(ticks(from), -8 * kLatest), here);
        after(CpExpr(start_[p]), CpExpr(*loads), time, here);
        if (time < kLeastWait) continue;
        const auto interval = cp_.interval(CpExpr(*loads), CpExpr(time), CpExpr(*loads).add(time), here);
        for (const uint32_t r : flat_.resources(way)) on_resource_[r].push_back(interval);
      }
    }
  }

  void add_exclusion() {
    const auto exclude = [&](std::span<const uint32_t> set) {
      std::vector<CpInterval> busy;
      bool open = set.size() > 1;
      size_t last = kNone;
      for (size_t p = 0; p < ops_.size(); ++p) {
        for (const uint32_t i : set) {
          if (!possible(p, i)) continue;
          open = open || is_free_[p];
          if (set.size() == 1 && !is_free_[p]) {
            if (last != kNone) after(CpExpr(start_[p]), end_on(last, i), 0, {});
            last = p;
          }
          if (run(p, i) > 0)
            busy.push_back(cp_.interval(CpExpr(start_[p]), CpExpr(run(p, i)), end_on(p, i), all({at(p, i)})));
        }
      }
      if (open && busy.size() > 1) cp_.no_overlap(busy);
    };
    for (uint32_t i = 0; i < k_; ++i) exclude(std::span(&i, 1));
    for (const auto& group : flat_.core_groups()) exclude(group);
    for (const auto& [resource, intervals] : on_resource_) {
      if (intervals.size() > 1) cp_.no_overlap(intervals);
    }
  }

  // Parameters that several ops of the window share count for each: too much rather than too little.
  void add_memory() {
    if (!flat_.has_limits()) return;
    for (size_t pool = 0; pool < flat_.num_pools(); ++pool) {
      if (flat_.pool_limit(pool) <= 0) continue;
      CpExpr bytes;
      int64_t now = 0;
      for (size_t p = 0; p < ops_.size(); ++p) {
        for (size_t i = 0; i < k_; ++i) {
          if (!possible(p, i) || flat_.pool(i) != pool) continue;
          const int64_t own = new_bytes(p, i) >> kBytesShift;
          if (own == 0) continue;
          if (plan_.device[ops_[p]] == i) now = plus_bytes(now, own);
          if (at(p, i).kind == Placement::kAlways)
            bytes.add(own);
          else
            bytes.add(at(p, i).literal, own);
        }
      }
      if (!bytes.terms.empty())
        cp_.linear(0, std::move(bytes), std::max(now, around_.room[pool] >> kBytesShift));
    }
  }

  static constexpr int kBytesShift = 10;
  const FlatProblem& flat_;
  const FlatPlan& plan_;
  const TimedPlan timed_;
  const size_t k_, first_;
  std::vector<uint32_t> ops_;
  std::vector<size_t> position_;
  double origin_us_ = 0, tick_us_ = 1;
  int64_t horizon_ = 0;
  Surroundings around_;
  std::vector<uint8_t> is_free_;
  bool contention_ = false;
  CpModel cp_;
  CpVar makespan_;
  std::vector<CpVar> start_;
  std::vector<Placement> x_;
  std::set<uint32_t> seen_;
  std::map<uint32_t, std::vector<CpInterval>> on_resource_;
};

}  // namespace

Result<WindowAnswer> solve_window(const FlatProblem& flat, const TimedPlan& timed, const Neighbourhood& area,
                                  const WindowLimits& limits) {
  WindowAnswer answer;
  answer.plan = *timed.plan;
  Window window(flat, timed, area);
  if (window.hopeless()) {
    answer.complete = true;
    return answer;
  }
  window.build();
  SolveOptions options;
  options.deadline = limits.deadline;
  options.seed = limits.seed;
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve_for(window.cp(), limits.work, options));
  // Infeasible: rounding, or transfers in an order that the evaluator serves otherwise, leave the plan itself
  // no place.
  answer.complete = solution.status == SolveStatus::kOptimal || solution.status == SolveStatus::kInfeasible;
  if (!solution.has_values()) return answer;
  answer.plan = window.decode(solution.values);
  answer.changed = answer.plan.device != timed.plan->device || answer.plan.order != timed.plan->order;
  return answer;
}

}  // namespace heddle
